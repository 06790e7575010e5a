import type { CellTask } from './benchmark.ts';
import { UsageError } from './errors.ts';
import type { JsonObject } from './json.ts';

type AnyTask = CellTask<JsonObject, JsonObject, JsonObject>;

/** Tasks are loaded where they run, so that the process that only runs cells never opens a device. */
const builtInTasks: Readonly<Record<string, () => Promise<unknown>>> = {
  e2e: async () => (await import('./e2e/benchmark.ts')).e2eBenchmark,
  warmup: async () => (await import('./warmup/benchmark.ts')).warmupBenchmark,
  overhead: async () => (await import('./overhead/benchmark.ts')).overheadBenchmark,
  precision: async () => (await import('./precision/benchmark.ts')).precisionBenchmark,
  'first-op': async () => (await import('./overhead/first-op.ts')).firstOpTask,
  memory: async () => (await import('./memory/benchmark.ts')).memoryBenchmark,
  profile: async () => (await import('./profile/benchmark.ts')).profileBenchmark,
  'probe-device': async () => (await import('./device/probe-device.ts')).probeDevice,
  'measure-ceilings': async () => (await import('./device/measure-ceilings.ts')).measureCeilings,
  agree: async () => (await import('./agree/agree-task.ts')).agreeTask,
};

/** `name` is that of a built-in task, or the `file:` URL of a module whose default export is one. */
export async function loadTask(name: string): Promise<AnyTask> {
  const task = name.startsWith('file:')
    ? ((await import(name)) as { default: unknown }).default
    : await builtInTasks[name]?.();
  if (task === undefined) throw new UsageError(`There is no task ${name}.`);
  return task as AnyTask;
}
