import type { Pass } from '../../attention/work.ts';
import type { Outcome, Timed } from './result.ts';

/** Milliseconds that a turn fills. */
export interface Turn {
  readonly warmupMs: number;
  readonly repeatMs: number;
}

/** One attention, of whichever side, that takes turns with others. */
export interface Contender {
  /** As the result names it. */
  readonly name: Pick<Timed, 'side' | 'attention'>;
  /** Runs both passes once; gives the most bytes held, or null where they are not counted. */
  probe(): Promise<number | null>;
  /** Milliseconds of each call. */
  sample(pass: Pass, turn: Turn): Promise<number[]>;
  /** The outcome to report for an error of either function; null for one that spoils the cell. */
  explain(error: unknown): Exclude<Outcome, { status: 'ok' }> | null;
}

export interface Contest {
  readonly passes: readonly Pass[];
  readonly rounds: number;
  readonly turn: Turn;
  /** Called after every turn. */
  onTurn(): Promise<void>;
}

/** What came of each contender: first all are probed, then they sample in turn, A B A B. */
export async function compete(contenders: readonly Contender[], contest: Contest): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const contender of contenders) {
    const probe = async (): Promise<Outcome> => ({
      status: 'ok',
      samplesMs: {},
      peakBytes: await contender.probe(),
    });
    outcomes.push(await explained(contender, probe));
    await contest.onTurn();
  }
  for (let round = 0; round < contest.rounds; round++) {
    for (const pass of contest.passes) {
      for (const [index, contender] of contenders.entries()) {
        outcomes[index] = await sampled(contender, outcomes[index]!, pass, contest.turn);
        await contest.onTurn();
      }
    }
  }
  return outcomes;
}

/** The outcome with the samples of one more turn; as it is where the contender has failed before. */
async function sampled(contender: Contender, outcome: Outcome, pass: Pass, turn: Turn): Promise<Outcome> {
  if (outcome.status !== 'ok') return outcome;
  return explained(contender, async () => {
    const samples = [...(outcome.samplesMs[pass] ?? []), ...(await contender.sample(pass, turn))];
    return { ...outcome, samplesMs: { ...outcome.samplesMs, [pass]: samples } };
  });
}

async function explained(contender: Contender, work: () => Promise<Outcome>): Promise<Outcome> {
  try {
    return await work();
  } catch (error) {
    const outcome = contender.explain(error);
    if (outcome === null) throw error;
    return outcome;
  }
}
