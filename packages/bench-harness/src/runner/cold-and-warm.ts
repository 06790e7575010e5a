import { join } from 'node:path';
import type { z } from 'zod';
import { temporaryFolder } from '../temporary-folder.ts';
import { runCellProcess } from './cell-process.ts';
import type { CellJob } from './cell-protocol.ts';

/**
 * The results of a job in two fresh processes that share caches of kernels of their own, empty before the first; the user's
 * are neither read nor written. Throws, with `what` failed, when one of them fails.
 */
export async function runColdAndWarm<R>(
  job: CellJob,
  result: z.ZodType<R>,
  what: string,
): Promise<{ cold: R; warm: R }> {
  using folder = temporaryFolder('cold');
  const cache = folder.path;
  // NVRTC has a cache of its own since 12.9.
  const environment = { ROOFLINE_CACHE_DIR: cache, CUDA_CACHE_PATH: join(cache, 'nvidia') };
  const run = async () => {
    const outcome = await runCellProcess(job, { environment });
    if (outcome.status === 'ok') return result.parse(outcome.result);
    const reason = outcome.status === 'interrupted' ? 'it was interrupted' : outcome.error.message;
    throw new Error(`${what} in a process of its own failed: ${reason}`);
  };
  const cold = await run();
  return { cold, warm: await run() };
}
