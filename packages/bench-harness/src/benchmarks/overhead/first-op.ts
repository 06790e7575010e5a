import { device as openDevice } from '@roofline/tensor-core';
import type { CellTask } from '../../runner/cell-task.ts';
import { timeColdAndWarm } from '../../runner/cold-and-warm.ts';
import { eagerOps } from './eager-ops.ts';
import type { EagerOpName, OpCell } from './parameters.ts';

/** The time from the start of this process to the result of its first op: Node, the library, the device, the kernel. */
export const firstOpTask: CellTask<OpCell, Record<string, never>, { durationMs: number }> = {
  name: 'first-op',
  measure({ op }, { deviceLabel }) {
    const device = openDevice(deviceLabel as `cuda:${number}`);
    eagerOps[op](device)();
    device.synchronize();
    return { durationMs: performance.now() };
  },
};

/** With no kernel compiled yet, and with all in the cache. Throws when one of the two processes fails. */
export function measureFirstOp(op: EagerOpName, deviceLabel: string) {
  const job = { task: 'first-op', parameters: { op }, settings: {}, deviceLabel };
  return timeColdAndWarm(job, `The first ${op}`);
}
