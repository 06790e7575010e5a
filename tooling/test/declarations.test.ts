import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';

const root = join(import.meta.dirname, '../..');

/** The declarations that a package is published with: their texts by path. */
function declarationsOf(name: string): ReadonlyMap<string, string> {
  const folder = mkdtempSync(join(tmpdir(), 'roofline-declarations-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const config = join(root, 'packages', name, 'tsconfig.build.json');
  // Types of other packages may not be built yet, which changes nothing of what is declared.
  const words = ['-p', config, '--outDir', folder, '--customConditions', 'roofline-source', '--noCheck'];
  execFileSync(join(root, 'node_modules/.bin/tsc'), words, { cwd: join(root, 'packages', name) });
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.d.ts'),
  );
  return new Map(paths.map((path) => [path, readFileSync(join(folder, path), 'utf8')]));
}

const packages = readdirSync(join(root, 'packages'));

it.each(packages)('what %s is published with declares nothing that is marked as internal', (name) => {
  const declarations = declarationsOf(name);
  expect(declarations.has('index.d.ts')).toBe(true);
  for (const [path, text] of declarations) expect([path, /@internal/.test(text)]).toEqual([path, false]);
});

/** Whether a class, or what it is part of, declares a member that completion would offer. */
function isDeclared(text: string, name: string): boolean {
  return new RegExp(`^ {4}(readonly |static |get |set )*${name}([?(:]| = )`, 'm').test(text);
}

it.each([
  [
    'cuda',
    'memory/memory-pool.d.ts',
    ['segmentSize', 'entered', 'segments', 'blocksOf', 'allBlocks'],
    'release',
  ],
  [
    ...['tensor-core', 'backends/cuda/device.d.ts'],
    ['allocateAt', 'discard', 'awaitFreedMemory', 'internals', 'holdBackOtherStreams'],
    'type',
  ],
  ['tensor-core', 'tensor/storage/storage.d.ts', ['settle', 'retain'], 'noteWrite'],
] as const)('%s: %s keeps to itself %j', (name, path, internals, offered) => {
  const text = declarationsOf(name).get(path)!;
  expect(internals.filter((each) => isDeclared(text, each))).toEqual([]);
  expect(isDeclared(text, offered)).toBe(true);
});

it('tensors and devices declare no internals, which completion would offer', () => {
  const declarations = declarationsOf('tensor-core');
  const tensor = declarations.get('tensor/tensor.d.ts')!;
  const scoped = declarations.get('tensor/lifetime/scope.d.ts')!;
  expect(tensor).toMatch(/^ {4}get requiresGrad\(\)/m);
  expect(scoped).toMatch(/^ {4}abstract dispose\(\)/m);
  const internals = [
    'endsWith',
    'moveTo',
    'node',
    'outputIndex',
    'setHistory',
    'gradientEdge',
    'hasGradientHooks',
  ];
  for (const name of [...internals, 'allocate', 'scope']) {
    expect([name, isDeclared(tensor, name), isDeclared(scoped, name)]).toEqual([name, false, false]);
  }
  expect(declarations.get('tensor/device.d.ts')).not.toMatch(/^ {4}(run|allocate|observeMemory)\(/m);
});
