import { join } from 'node:path';
import { expect, it } from 'vitest';
import { importGraph } from '../../../tooling/import-graph.ts';

/** Rooms, and those that know of them: none of these may be imported there, for types neither. */
const above: Readonly<Record<string, readonly string[]>> = {
  parameters: ['report', 'runner', 'cli', 'model', 'benchmarks', 'commands'],
  measuring: ['report', 'runner', 'cli', 'model', 'benchmarks', 'commands'],
  records: ['report', 'runner', 'cli', 'model', 'benchmarks', 'commands'],
  peer: ['report', 'cli', 'benchmarks', 'commands'],
  cli: ['benchmarks', 'study', 'commands'],
  model: ['benchmarks', 'study', 'commands'],
  benchmarks: ['study', 'commands'],
  study: ['commands'],
};

const graph = importGraph(join(import.meta.dirname, '../src'));
const roomOf = (module: string) => module.split('/')[0]!;

it.each(Object.entries(above))('%s knows nothing of what is made with it', (room, others) => {
  const modules = [...graph].filter(([module]) => roomOf(module) === room);
  expect(modules.length).toBeGreaterThan(1);
  const wrong = modules.flatMap(([module, imports]) =>
    imports.filter((each) => others.includes(roomOf(each))).map((each) => `${module} imports ${each}`),
  );
  expect(wrong).toEqual([]);
});
