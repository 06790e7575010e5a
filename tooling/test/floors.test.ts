import { globSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { aboveFloors, drawFloors, floors, ground } from '../../packages/tensor-core/floors.ts';
import { importGraph } from '../import-graph.ts';

const root = join(import.meta.dirname, '../..');
const source = join(root, 'packages/tensor-core/src');
const names = floors.map(({ name }) => name);

/** The floor that a module lies on, from 0; what lies above all floors is as high as there are some. */
function heightOf(module: string): number {
  const floor = names.indexOf(module.split('/')[0]!);
  return floor < 0 ? names.length : floor;
}

it('every file of tensor-core lies on a floor, or is named as above them', () => {
  expect(readdirSync(source).toSorted()).toEqual([...names, ...aboveFloors].toSorted());
});

it('no import of tensor-core runs upwards, of types either', () => {
  const upwards: string[] = [];
  for (const [module, imports] of importGraph(source))
    for (const to of imports) if (heightOf(to) > heightOf(module)) upwards.push(`${module} -> ${to}`);
  expect(upwards).toEqual([]);
});

it('floors that know no device know of the package below them what knows no GPU', () => {
  const entries = globSync('{base,onnx,tensor}/**/*.ts', { cwd: source }).flatMap((module) =>
    [...readFileSync(join(source, module), 'utf8').matchAll(/'(@roofline\/cuda[^']*)'/g)].map(
      ([, entry]) => entry!,
    ),
  );
  expect(new Set(entries)).toEqual(new Set([`${ground.name}/host`]));
});

it('what of that package knows no GPU lies in its `base` and imports nothing beyond', () => {
  const modules = importGraph(join(root, 'packages/cuda/src'));
  const known = [...modules].filter(([module]) => module.startsWith('base/') || module === 'host.ts');
  expect(known.length).toBeGreaterThan(10);
  for (const [, imports] of known) for (const to of imports) expect(to).toMatch(/^base\//);
});

it('CONTRIBUTING.md shows the floors as they are', () => {
  expect(readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8')).toContain(`\`\`\`text\n${drawFloors()}\`\`\``);
});
