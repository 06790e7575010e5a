import { mean, max } from 'simple-statistics';
import { describeFailure, peerPython } from '../../peer/cell-peer.ts';
import { UntilFailure } from '../../peer/until-failure.ts';
import type { CellContext } from '../../runner/cell-task.ts';
import { measureLink } from './link.ts';
import { measureLoopback } from './loopback.ts';
import { type Placement, factsOf, pieceCount } from './operations.ts';
import type { CollectiveCell, CollectiveSettings } from './parameters.ts';
import { OwnRanks } from './ranks/own-ranks.ts';
import { TorchRanks } from './ranks/torch-ranks.ts';
import type { Ranks, TurnReply } from './ranks/turns.ts';
import type { CollectiveResult, Timing, Timings } from './result.ts';

/** Of the sends between neighbours that show what a GPU's links can do. */
const roofBytes = 2 ** 28;

/** Measures one cell: its ranks are processes that this one starts. */
export async function measureCollective(
  cell: CollectiveCell,
  { settings, progress }: CellContext<CollectiveSettings>,
): Promise<CollectiveResult> {
  const ours = await OwnRanks.start(cell.backend, cell.ranks);
  const torch = settings.peer && new Peer(cell);
  try {
    const side = new Side(ours, cell);
    await side.prepare();
    await torch?.start();
    const placements = factsOf[cell.op].placements;
    const total = settings.rounds * placements.length;
    let done = 0;
    for (let round = 0; round < settings.rounds; round++)
      for (const placement of placements) {
        await side.sample(placement, settings);
        await torch?.sample(placement, settings);
        progress(++done, total, 'turns');
      }
    await side.check();
    return {
      ours: side.timings(),
      torch: torch ? torch.outcome() : null,
      roofBytesPerSecond: await roofOf(cell, ours),
    };
  } finally {
    await Promise.all([ours.end(), torch?.end()]);
  }
}

/** Ranks of one side, and what they have measured so far. */
class Side {
  readonly #ranks: Ranks;
  readonly #cell: CollectiveCell;
  readonly #timings = new Map<Placement, { maxMs: number[]; meanMs: number[]; wrong: number | null }>();

  constructor(ranks: Ranks, cell: CollectiveCell) {
    this.#ranks = ranks;
    this.#cell = cell;
  }

  async prepare(): Promise<void> {
    const { op, dtype } = this.#cell;
    await this.#ranks.ask({ command: 'prepare', op, dtype, count: pieceCount(this.#cell) });
  }

  async sample(placement: Placement, { warmup, iterations }: CollectiveSettings): Promise<void> {
    const timing = this.#timings.get(placement) ?? { maxMs: [], meanMs: [], wrong: null };
    this.#timings.set(placement, timing);
    const replies = await this.#ranks.ask({ command: 'sample', placement, warmup, iterations });
    const byRank = replies.map(({ samplesMs = [] }) => samplesMs);
    for (const [i] of byRank[0]!.entries()) {
      const times = byRank.map((samplesMs) => samplesMs[i]!);
      timing.maxMs.push(max(times));
      timing.meanMs.push(mean(times));
    }
  }

  async check(): Promise<void> {
    for (const [placement, timing] of this.#timings) {
      const replies = await this.#ranks.ask({ command: 'check', placement });
      timing.wrong = replies.reduce((sum: number, { wrong = 0 }: TurnReply) => sum + wrong, 0);
    }
  }

  timings(): Timings {
    return Object.fromEntries(this.#timings) as Record<Placement, Timing>;
  }
}

/** PyTorch's side. What fails there is reported in its place, and ours is kept. */
class Peer {
  readonly #asked: UntilFailure<TorchRanks>;
  readonly #side: Side;
  readonly #cell: CollectiveCell;

  constructor(cell: CollectiveCell) {
    const ranks = new TorchRanks(peerPython(), cell.ranks);
    this.#cell = cell;
    this.#asked = new UntilFailure(ranks);
    this.#side = new Side(ranks, cell);
  }

  start(): Promise<void> {
    return this.#asked.attempt(async (ranks) => {
      await ranks.join(this.#cell.backend);
      await this.#side.prepare();
    });
  }

  async sample(placement: Placement, settings: CollectiveSettings): Promise<void> {
    if (placement !== factsOf[this.#cell.op].compared) return;
    await this.#asked.attempt(() => this.#side.sample(placement, settings));
  }

  outcome(): CollectiveResult['torch'] {
    const { failure } = this.#asked;
    if (failure === null) return { status: 'ok', timings: this.#side.timings() };
    const { status, error } = describeFailure(failure);
    return { status, error };
  }

  end(): Promise<void> {
    return this.#asked.peer.end();
  }
}

/** Bytes a second each way: what a plain copy reaches, or what NCCL's own sends do where that is more. */
async function roofOf({ backend, ranks }: CollectiveCell, ours: OwnRanks): Promise<number | null> {
  if (ranks < 2) return null;
  if (backend === 'gloo') return await measureLoopback();
  const cell = { op: 'sendrecv', backend, ranks, bytes: roofBytes, dtype: 'float32' } as const;
  const side = new Side(ours, cell);
  await side.prepare();
  await side.sample('out-of-place', { warmup: 2, iterations: 10, rounds: 1, peer: null });
  const sent = (roofBytes * 1000) / Math.min(...side.timings()['out-of-place']!.maxMs);
  return Math.max(sent, measureLink() ?? 0);
}
