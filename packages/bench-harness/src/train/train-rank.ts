import { initProcessGroup } from '@roofline/collectives';
import { watchInterruption } from '../cli/interruption.ts';
import type { RankBackend } from '../device/require-backend.ts';
import { EXIT, UsageError } from '../errors.ts';
import { sendRankEvent } from '../runner/rank-lines.ts';
import { DivergenceError } from './loss-watch.ts';
import type { TrainRankEvent } from './rank-event.ts';
import { openTokens } from './token-data.ts';
import { type TrainingJob, type TrainingObserver, runTraining } from './training-run.ts';

/** What each rank is given. */
export interface RankJob extends Pick<
  TrainingJob,
  'settings' | 'folder' | 'checkpoint' | 'peakFlopsPerSecond'
> {
  readonly backend: RankBackend;
}

/** As long as rank 0 may write a checkpoint, or one may compile its first step, while the others wait. */
const timeoutMs = 600_000;

const send = sendRankEvent<TrainRankEvent>;
const sending: TrainingObserver = {
  progressed: (progress) => send({ type: 'progressed', progress }),
  evaluated: (step, validationLoss, progress) => send({ type: 'evaluated', step, validationLoss, progress }),
};
const silent: TrainingObserver = { progressed() {}, evaluated() {} };

/** Makes one rank's side of a training. */
export async function trainRank({ backend, ...job }: RankJob): Promise<void> {
  using watch = watchInterruption();
  const group = await initProcessGroup({ backend, timeoutMs });
  const { rank } = group;
  // The rank's environment shows it one GPU.
  const deviceLabel = backend === 'nccl' ? 'cuda:0' : 'cpu';
  const observer = rank === 0 ? sending : silent;
  const { signal } = watch;
  try {
    const source = openTokens(job.settings.data);
    try {
      const outcome = await runTraining({ ...job, ...{ source, deviceLabel, group, signal, observer } });
      if (rank === 0) send({ type: 'ended', outcome });
    } finally {
      (source as Partial<Disposable>)[Symbol.dispose]?.();
    }
  } catch (error) {
    const isUsage = error instanceof UsageError;
    if (!isUsage && !(error instanceof DivergenceError)) throw error;
    send({ type: 'refused', isUsage, message: error.message });
    process.exitCode = EXIT.failure;
  } finally {
    group.dispose();
  }
}
