import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { device as openDevice } from '@roofline/tensor-core';
import { z } from 'zod';
import type { CellTask } from '../definition.ts';
import { runCellProcess } from '../../runner/cell-process.ts';
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

/** Two fresh processes that share a kernel cache, empty before the first. Throws when one of them fails. */
export async function measureFirstOp(op: EagerOpName, deviceLabel: string): Promise<OpResult['firstOp']> {
  const cache = mkdtempSync(join(tmpdir(), 'roofline-cold-'));
  const run = async () => {
    const outcome = await runCellProcess(
      { task: 'first-op', parameters: { op }, settings: {}, deviceLabel },
      { environment: { ROOFLINE_CACHE_DIR: cache } },
    );
    if (outcome.status === 'ok') return firstOpResult.parse(outcome.result).milliseconds;
    const reason = outcome.status === 'interrupted' ? 'it was interrupted' : outcome.error.message;
    throw new Error(`The first ${op} in a process of its own failed: ${reason}`);
  };
  try {
    const coldMs = await run();
    return { coldMs, warmMs: await run() };
  } finally {
    rmSync(cache, { recursive: true, force: true });
  }
}
