import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { benchmarkEntries } from '../../src/benchmarks/list.ts';
import { cellProgram } from '../../src/paths.ts';

/** Loads what cells of these tasks run, and prints the modules that came with it. */
const program = (tasks: readonly string[]) => `
  import { registerHooks } from 'node:module';
  const urls = [];
  registerHooks({ load(url, context, next) { urls.push(url); return next(url, context); } });
  const { loadTask } = await import(${JSON.stringify(new URL('../../src/benchmarks/tasks.ts', import.meta.url).href)});
  for (const name of ${JSON.stringify(tasks)}) await loadTask(name);
  console.log(JSON.stringify(urls));
`;

it('the process of a cell loads no module that reports, and no command', () => {
  const tasks = benchmarkEntries.flatMap(({ name, tasks }) => [name, ...Object.keys(tasks ?? {})]);
  const flags = [...cellProgram.nodeFlags, '--input-type=module', '--eval', program(tasks)];
  const urls = JSON.parse(execFileSync(process.execPath, flags, { encoding: 'utf8' })) as string[];
  // What measures is among them.
  for (const { name } of benchmarkEntries)
    expect(urls.some((url) => url.endsWith(`/benchmarks/${name}/measure.ts`))).toBe(true);
  expect(
    urls.filter((url) =>
      /\/packages\/reports\/|\/report\/|\/benchmark\.ts$|\/cli\/|\/command\.ts$/.test(url),
    ),
  ).toEqual([]);
});
