import { observeWorks, type Work } from '@roofline/collectives';
import { type ProfiledKernel, RooflineError, profile } from '@roofline/tensor-core';
import { packProfile } from '../profile/packed-profile.ts';
import { glooStream } from './overlap.ts';
import type { ProfiledPass } from './result.ts';

/**
 * Profiles `pass`. NCCL's kernels are recorded with all others; what Gloo's threads do is known from its works. Where
 * the profiler cannot run, as without CUPTI, that becomes part of the result.
 */
export async function profilePass(pass: () => void): Promise<ProfiledPass> {
  const works: Work[] = [];
  const ignore = observeWorks((work) => works.push(work));
  let [startMs, sharedStartMs] = [0, 0];
  try {
    const taken = await profile(() => {
      sharedStartMs = Number(process.hrtime.bigint()) / 1e6;
      startMs = performance.now();
      pass();
    });
    await Promise.all(works.map(({ done }) => done));
    const communication = workKernels(works, startMs);
    const kernels = [...taken.kernels, ...communication].sort((a, b) => a.startUs - b.startUs);
    return {
      status: 'ok',
      communication: communication.length > 0 ? 'works' : 'kernels',
      startMs: sharedStartMs,
      profile: packProfile({ ...taken, kernels }),
    };
  } catch (error) {
    if (!(error instanceof RooflineError)) throw error;
    return { status: 'failed', error: error.message };
  } finally {
    ignore();
  }
}

/** Works whose times are known, as kernels of a stream of their own. */
function workKernels(works: readonly Work[], profileStartMs: number): ProfiledKernel[] {
  return works.flatMap(({ op, ran }) =>
    ran === null
      ? []
      : [
          {
            name: op,
            kind: 'kernel',
            startUs: (ran.startMs - profileStartMs) * 1000,
            durationUs: (ran.endMs - ran.startMs) * 1000,
            stream: glooStream,
            ...{ op: null, byteLength: null, grid: null, block: null },
          },
        ],
  );
}
