import { join } from 'node:path';
import { z } from 'zod';
import { temporaryFolder } from '../temporary-folder.ts';
import { runCellProcess } from './cell-process.ts';
import type { CellJob } from './cell-protocol.ts';

const timed = z.object({ durationMs: z.number() });

/**
 * The `durationMs` that a job gives in two fresh processes, which share caches of kernels of their own that are empty before the
 * first; the user's are neither read nor written. Throws, with `what` failed, when one of them fails.
 */
export async function timeColdAndWarm(
  job: CellJob,
  what: string,
): Promise<{ coldMs: number; warmMs: number }> {
  using folder = temporaryFolder('cold');
  const cache = folder.path;
  // NVRTC has a cache of its own since 12.9.
  const environment = { ROOFLINE_CACHE_DIR: cache, CUDA_CACHE_PATH: join(cache, 'nvidia') };
  const run = async () => {
    const outcome = await runCellProcess(job, { environment });
    if (outcome.status === 'ok') return timed.parse(outcome.result).durationMs;
    const reason = outcome.status === 'interrupted' ? 'it was interrupted' : outcome.error.message;
    throw new Error(`${what} in a process of its own failed: ${reason}`);
  };
  return { coldMs: await run(), warmMs: await run() };
}
