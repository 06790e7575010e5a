import type { CellTask } from '../benchmarks/definition.ts';
import { UsageError } from '../errors.ts';
import type { JsonObject } from '../records/json.ts';

type AnyTask = CellTask<JsonObject, JsonObject, JsonObject>;

/** Tasks are loaded where they run, so that the process that only runs cells never opens a device. */
const builtInTasks: Readonly<Record<string, () => Promise<unknown>>> = {
  e2e: async () => (await import('../benchmarks/e2e/benchmark.ts')).e2eBenchmark,
  warmup: async () => (await import('../benchmarks/warmup/benchmark.ts')).warmupBenchmark,
  overhead: async () => (await import('../benchmarks/overhead/benchmark.ts')).overheadBenchmark,
  precision: async () => (await import('../benchmarks/precision/benchmark.ts')).precisionBenchmark,
  'first-op': async () => (await import('../benchmarks/overhead/first-op.ts')).firstOpTask,
  memory: async () => (await import('../benchmarks/memory/benchmark.ts')).memoryBenchmark,
  profile: async () => (await import('../benchmarks/profile/benchmark.ts')).profileBenchmark,
  'probe-device': async () => (await import('../device/probe-device.ts')).probeDevice,
  'measure-ceilings': async () => (await import('../device/measure-ceilings.ts')).measureCeilings,
  agree: async () => (await import('../peer/agree/agree-task.ts')).agreeTask,
};

/** `name` is that of a built-in task, or the `file:` URL of a module whose default export is one. */
export async function loadTask(name: string): Promise<AnyTask> {
  const task = name.startsWith('file:')
    ? ((await import(name)) as { default: unknown }).default
    : await builtInTasks[name]?.();
  if (task === undefined) throw new UsageError(`There is no task ${name}.`);
  return task as AnyTask;
}
