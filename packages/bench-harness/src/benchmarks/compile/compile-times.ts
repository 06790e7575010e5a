import { device as openDevice } from '@roofline/tensor-core';
import type { Compilation } from '../../execution/compilation.ts';
import { timeColdAndWarm } from '../../runner/cold-and-warm.ts';
import type { CellTask } from '../../runner/cell-task.ts';
import { createWorkload } from '../e2e/workload.ts';
import type { CompileCell } from './parameters.ts';

type Seed = { readonly seed: number };

/** Compiles the step of a cell in this process, where nothing of it has run before. */
export const compileTimeTask: CellTask<CompileCell, Seed, Compilation> = {
  name: 'compile-time',
  measure(cell, { settings, deviceLabel }) {
    const device = openDevice(deviceLabel as `cuda:${number}`);
    const workload = createWorkload(cell, device, settings.seed);
    workload.compile();
    return workload.program!.compilation;
  },
};

/** What compiling takes with no kernel compiled yet, and with all in the cache. Throws when one of the two processes fails. */
export function measureCompileTimes(cell: CompileCell, seed: number, deviceLabel: string) {
  const job = { task: 'compile-time', parameters: cell, settings: { seed }, deviceLabel };
  return timeColdAndWarm(job, 'Compiling the step');
}
