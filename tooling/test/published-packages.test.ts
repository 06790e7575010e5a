import { execFile } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { serveRegistry, type PackedPackage } from './local-registry.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const pnpm = join(root, 'node_modules/.bin/pnpm');
const foldersIn = (place: string) =>
  globSync(`${place}/*/package.json`, { cwd: root }).map((manifest) => join(root, dirname(manifest)));
const packages = foldersIn('packages');
const libraries = foldersIn('libraries');
const names = packages.map((folder) => readManifest(join(folder, 'package.json')).name);

function readManifest(path: string): PackedPackage['manifest'] & { files?: string[] } {
  return JSON.parse(readFileSync(path, 'utf8'));
}

/** What a command prints. Throws an error that holds all its output. */
async function run(command: string, args: readonly string[], cwd: string): Promise<string> {
  // The folders that pnpm's programs add for what they start would hide a missing package.
  const { NODE_PATH: _, ...env } = process.env;
  const options = { cwd, env, timeout: 240_000, maxBuffer: 2 ** 26 };
  try {
    return (await promisify(execFile)(command, args, options)).stdout;
  } catch (cause) {
    const { stdout, stderr } = cause as { stdout: string; stderr: string };
    throw new Error(`${command} ${args.join(' ')} failed:\n${stdout}\n${stderr}`, { cause });
  }
}

async function pack(folder: string, destination: string): Promise<PackedPackage> {
  const output = await run(pnpm, ['pack', '--json', '--pack-destination', destination], folder);
  const { filename } = JSON.parse(output.slice(output.indexOf('{'))) as { filename: string };
  const manifest = await run('tar', ['-xzOf', filename, 'package/package.json'], destination);
  return { manifest: JSON.parse(manifest), tarball: filename };
}

describe('the packages as npm serves them', () => {
  let project: string;

  // As users install them: by their names from a registry, with install scripts on.
  beforeAll(async () => {
    project = mkdtempSync(join(tmpdir(), 'roofline-install-'));
    const packed = [];
    for (const folder of [...packages, ...libraries]) packed.push(await pack(folder, project));
    writeFileSync(
      join(project, 'package.json'),
      JSON.stringify({ name: 'empty', private: true, type: 'module' }),
    );
    await using registry = await serveRegistry(packed);
    writeFileSync(join(project, '.npmrc'), `@roofline:registry=${registry.url}\n`);
    await run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', ...names], project);
  }, 300_000);

  afterAll(() => rmSync(project, { recursive: true, force: true }));

  it('run no install script but that of koffi, which looks for its binary, and fetch one ONNX Runtime', () => {
    const lock = JSON.parse(readFileSync(join(project, 'node_modules/.package-lock.json'), 'utf8')) as {
      packages: Record<string, { hasInstallScript?: boolean }>;
    };
    const installed = Object.entries(lock.packages);
    const scripted = installed.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => path);
    expect(scripted).toEqual(['node_modules/koffi']);
    expect(installed.map(([path]) => path).filter((path) => path.includes('onnxruntime'))).toEqual([
      `node_modules/@roofline/onnxruntime-${process.platform}-${process.arch}`,
    ]);
  });

  it('take less than 100 MB', async () => {
    const [kibibytes] = (await run('du', ['-sk', 'node_modules'], project)).split('\t');
    expect(Number(kibibytes)).toBeLessThan(100e6 / 1024);
  });

  it('calculate on the CPU', async () => {
    const script = `import { tensor, add } from '@roofline/tensor-core';
      console.log(add(tensor([1, 2]), 1).toFlatArray().join());`;
    expect(await run('node', ['--input-type=module', '--eval', script], project)).toBe('2,3\n');
  });

  it.each(names)('%s imports in an empty project', async (name) => {
    const script = `import(${JSON.stringify(name)}).then((module) => console.log(Object.keys(module).length))`;
    expect(Number(await run('node', ['--input-type=module', '--eval', script], project))).toBeGreaterThan(0);
  });

  it('have types that a strict project can use', async () => {
    writeFileSync(
      join(project, 'use.ts'),
      `${names.map((name, i) => `import * as package${i} from '${name}';`).join('\n')}
       import { tensor } from '@roofline/tensor-core';
       export const values: number[] = tensor([1, 2]).toFlatArray();
       export const all = [${names.map((_, i) => `package${i}`).join()}];`,
    );
    const compilerOptions = {
      strict: true,
      module: 'nodenext',
      target: 'es2023',
      noEmit: true,
      types: [],
      lib: ['es2023', 'esnext.disposable', 'dom'],
    };
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['use.ts'] }));
    await run(join(root, 'node_modules/.bin/tsc'), ['-p', 'tsconfig.json'], project);
  });

  it('have a roofline command that works there', async () => {
    expect(await run(join(project, 'node_modules/.bin/roofline'), ['--help'], project)).toContain(
      'roofline e2e',
    );
  });
});

describe('releases', () => {
  it.each([...packages, ...libraries])(
    '%s passes a dry-run publish',
    async (folder) => {
      await run(pnpm, ['publish', '--dry-run', '--no-git-checks'], folder);
    },
    120_000,
  );

  it('every package is covered by a readable changeset or a released version', async () => {
    expect(await run('npx', ['changeset', 'status'], root)).not.toContain('error');
  });
});
