import type { AnyTask } from '../runner/cell-task.ts';
import { benchmarkEntries } from './list.ts';
import { UsageError } from '../errors.ts';

type Tasks = Readonly<Record<string, () => Promise<AnyTask>>>;

/** What runs in a process of its own and is no benchmark's. */
const ownTasks: Tasks = {
  'probe-device': async () => (await import('../device/probe-device.ts')).probeDevice,
  'measure-ceilings': async () => (await import('../device/measure-ceilings.ts')).measureCeilings,
  'compile-flash-kernels': async () =>
    (await import('../device/compile-flash-kernels.ts')).compileFlashKernels,
  agree: async () => (await import('../peer/agree/agree-task.ts')).agreeTask,
};

/** Tasks are loaded where they run, so that the process that only runs cells never opens a device. */
const builtInTasks: Tasks = Object.assign(
  { ...ownTasks },
  ...benchmarkEntries.map(({ name, measure, tasks }) => ({
    ...tasks,
    [name]: async () => ({ name, measure: (await measure()) as AnyTask['measure'] }),
  })),
);

/** `name` is that of a benchmark or a built-in task, or the `file:` URL of a module whose default export is one. */
export async function loadTask(name: string): Promise<AnyTask> {
  const task = name.startsWith('file:')
    ? ((await import(name)) as { default?: AnyTask }).default
    : await builtInTasks[name]?.();
  if (task === undefined) throw new UsageError(`There is no task ${name}.`);
  return task;
}
