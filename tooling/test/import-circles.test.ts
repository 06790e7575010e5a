import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, it } from 'vitest';

const statement = /^(?:import|export)\s+(?!type\b)([^'";]*?)\s*from\s*'(\.[^']+)'|^import\s*'(\.[^']+)'/gm;

/** The modules that a module needs to run: types alone leave nothing behind. */
function runtimeImports(path: string): string[] {
  return [...readFileSync(path, 'utf8').matchAll(statement)]
    .filter(([, names]) => names === undefined || !onlyTypes(names))
    .map(([, , from, bare]) => normalize(join(dirname(path), (from ?? bare)!)));
}

function onlyTypes(names: string): boolean {
  const list = /^\{([\s\S]*)\}$/.exec(names)?.[1];
  if (list === undefined) return false;
  const specifiers = list.split(',').map((name) => name.trim());
  return specifiers.every((name) => name === '' || name.startsWith('type '));
}

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

it.each(packages)('%s has no circle of imports at run time', (folder) => {
  const modules = globSync('**/*.ts', { cwd: join(root, folder) }).map((path) => join(root, folder, path));
  const graph = new Map(modules.map((path) => [path, runtimeImports(path)]));
  expect(modules.length).toBeGreaterThan(5);
  const done = new Set<string>();
  for (const module of modules) expect(circleFrom(graph, module, done)).toBeNull();
});
