import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { z } from 'zod';
import { runCellProcess } from './cell-process.ts';
import type { CellJob } from './cell-protocol.ts';

/**
 * The results of a job in two fresh processes that share a kernel cache of their own, empty before the first; the user's
 * is neither read nor written. Throws, with `what` failed, when one of them fails.
 */
export async function runColdAndWarm<R>(
  job: CellJob,
  result: z.ZodType<R>,
  what: string,
): Promise<{ cold: R; warm: R }> {
  const cache = mkdtempSync(join(tmpdir(), 'roofline-cold-'));
  const run = async () => {
    const outcome = await runCellProcess(job, { environment: { ROOFLINE_CACHE_DIR: cache } });
    if (outcome.status === 'ok') return result.parse(outcome.result);
    const reason = outcome.status === 'interrupted' ? 'it was interrupted' : outcome.error.message;
    throw new Error(`${what} in a process of its own failed: ${reason}`);
  };
  try {
    const cold = await run();
    return { cold, warm: await run() };
  } finally {
    rmSync(cache, { recursive: true, force: true });
  }
}
