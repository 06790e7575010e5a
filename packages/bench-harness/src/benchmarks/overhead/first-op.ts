import { device as openDevice } from '@roofline/tensor-core';
import { z } from 'zod';
import type { CellTask } from '../../runner/cell-task.ts';
import { runColdAndWarm } from '../../runner/cold-and-warm.ts';
import { eagerOps } from './eager-ops.ts';
import type { EagerOpName, OpCell } from './parameters.ts';
import type { OpResult } from './result.ts';

const firstOpResult = z.object({ milliseconds: z.number() });

/** The time from the start of this process to the result of its first op: Node, the library, the device, the kernel. */
export const firstOpTask: CellTask<OpCell, Record<string, never>, z.infer<typeof firstOpResult>> = {
  name: 'first-op',
  measure({ op }, { deviceLabel }) {
    const device = openDevice(deviceLabel as `cuda:${number}`);
    eagerOps[op](device)();
    device.synchronize();
    return { milliseconds: performance.now() };
  },
};

/** With no kernel compiled yet, and with all in the cache. Throws when one of the two processes fails. */
export async function measureFirstOp(op: EagerOpName, deviceLabel: string): Promise<OpResult['firstOp']> {
  const job = { task: 'first-op', parameters: { op }, settings: {}, deviceLabel };
  const { cold, warm } = await runColdAndWarm(job, firstOpResult, `The first ${op}`);
  return { coldMs: cold.milliseconds, warmMs: warm.milliseconds };
}
