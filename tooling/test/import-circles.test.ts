import { globSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { importGraph } from '../import-graph.ts';

/** The first circle that is met from `start`, as the modules along it. */
function circleFrom(
  graph: ReadonlyMap<string, readonly string[]>,
  start: string,
  done: Set<string>,
): string[] | null {
  const path: string[] = [];
  const visit = (module: string): string[] | null => {
    if (path.includes(module)) return [...path.slice(path.indexOf(module)), module];
    if (done.has(module)) return null;
    path.push(module);
    for (const next of graph.get(module) ?? []) {
      const circle = visit(next);
      if (circle) return circle;
    }
    path.pop();
    done.add(module);
    return null;
  };
  return visit(start);
}

const root = join(import.meta.dirname, '../..');
const packages = globSync('packages/*/src', { cwd: root });

it('finds the packages wherever it runs', () => {
  expect(packages.length).toBeGreaterThanOrEqual(5);
});

it('finds imports of types, of modules without names, and at run time', () => {
  const graph = importGraph(join(root, 'packages/tensor-core/src'));
  expect(graph.get('op/require-tensor.ts')).toEqual(['base/errors.ts', 'tensor/tensor.ts']);
  expect(graph.get('tensor/storage/extent.ts')).toEqual(
    expect.arrayContaining(['base/dtype.ts', 'base/shape.ts', 'tensor/storage/write-versions.ts']),
  );
  expect(graph.get('index.ts')).toContain('tensor-methods.ts');
});

it.each(packages)('%s has no circle of imports, of types either', (folder) => {
  const graph = importGraph(join(root, folder));
  expect(graph.size).toBeGreaterThan(5);
  const done = new Set<string>();
  for (const module of graph.keys()) expect(circleFrom(graph, module, done)).toBeNull();
});
