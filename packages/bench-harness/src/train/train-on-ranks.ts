import { launch } from '@roofline/collectives';
import { outputClosed } from '../cli/output.ts';
import type { RankBackend } from '../device/require-backend.ts';
import { UsageError } from '../errors.ts';
import { trainRankProgram } from '../paths.ts';
import { rankError } from '../runner/rank-error.ts';
import { readRankEvent } from '../runner/rank-lines.ts';
import { threadsOfRank } from '../runner/threads-of-rank.ts';
import { DivergenceError } from './loss-watch.ts';
import type { TrainRankEvent } from './rank-event.ts';
import type { RankJob } from './train-rank.ts';
import type { TrainingJob, TrainingObserver, TrainingOutcome } from './training-run.ts';

/** Once one has failed, nothing is left for the others to save. */
const graceMs = 1000;

/**
 * `runTraining` on as many processes as the settings say, which share the machine. A Ctrl-C reaches all of them, and they save once.
 * Throws what `runTraining` throws, and a RankError for a rank that failed, which ends the others.
 */
export async function trainOnRanks(
  job: Pick<TrainingJob, 'settings' | 'folder' | 'checkpoint' | 'peakFlopsPerSecond'>,
  backend: RankBackend,
  observer: TrainingObserver,
): Promise<TrainingOutcome> {
  const { settings, folder, checkpoint, peakFlopsPerSecond } = job;
  const rankJob: RankJob = { settings, folder, checkpoint, peakFlopsPerSecond, backend };
  // The ranks inherit it.
  if (backend === 'gloo') process.env['ROOFLINE_CPU_THREADS'] = String(threadsOfRank(settings.ranks));
  const heard = new Heard(observer);
  // The launcher passes signals on, and this is none.
  const stop = () => void process.emit('SIGINT');
  outputClosed.addEventListener('abort', stop);
  try {
    const { failure } = await launch({
      ...{ processes: settings.ranks, script: trainRankProgram, args: [JSON.stringify(rankJob)], graceMs },
      write: (stream, line) => heard.take(stream, line),
    });
    if (heard.refusal) throw heard.refusal;
    if (failure) throw rankError(failure);
  } finally {
    outputClosed.removeEventListener('abort', stop);
  }
  return heard.outcome!;
}

/** What ranks have reported. */
class Heard {
  outcome: TrainingOutcome | null = null;
  /** The first that one of them had. */
  refusal: UsageError | DivergenceError | null = null;
  readonly #observer: TrainingObserver;

  constructor(observer: TrainingObserver) {
    this.#observer = observer;
  }

  take(stream: 'stdout' | 'stderr', line: string): void {
    const event = readRankEvent<TrainRankEvent>(line);
    // What ranks print on stderr goes into the error of the one that failed.
    if (event === null && stream === 'stdout') process.stderr.write(`${line}\n`);
    if (event?.type === 'progressed') this.#observer.progressed(event.progress);
    else if (event?.type === 'evaluated')
      this.#observer.evaluated(event.step, event.validationLoss ?? NaN, event.progress);
    else if (event?.type === 'ended') this.outcome = event.outcome;
    else if (event?.type === 'refused')
      this.refusal ??= event.isUsage ? new UsageError(event.message) : new DivergenceError(event.message);
  }
}
