import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { aboveFloors, drawFloors, floors } from '../../packages/tensor-core/floors.ts';
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

it('no import of tensor-core runs upwards, of types either, and CUDA and ONNX Runtime know nothing of each other', () => {
  const upwards: string[] = [];
  for (const [module, imports] of importGraph(source))
    for (const to of imports) if (heightOf(to) > heightOf(module)) upwards.push(`${module} -> ${to}`);
  expect(upwards).toEqual([]);
  const between = [...importGraph(source)].flatMap(([module, imports]) =>
    imports.filter((to) => module.startsWith('onnx/') && to.startsWith('cuda/')),
  );
  expect(between).toEqual([]);
});

it('CONTRIBUTING.md shows the floors as they are', () => {
  expect(readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8')).toContain(`\`\`\`text\n${drawFloors()}\`\`\``);
});
