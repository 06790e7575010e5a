import { withRanks } from './run-ranks.ts';

/** What a survivor of test/ranks/loop.ts prints. */
export interface Told {
  readonly op: string;
  readonly rank: number;
  readonly peers: readonly number[];
  readonly message: string;
  readonly atMs: number;
}

/** How one survivor took the killing of another rank. */
export interface Survival {
  readonly told: Told;
  /** From the kill to the error in its hands. */
  readonly delayMs: number;
  readonly code: number | null;
}

export interface Killing {
  readonly backend: 'gloo' | 'nccl';
  readonly size: number;
  readonly victim: number;
  readonly elements: number;
  readonly timeoutMs: number;
  /** Default eager. */
  readonly execution?: LoopExecution;
}

/** What the ranks of test/ranks/loop.ts repeat: all-reduces, also in memory that all reach, or steps of sharded parameters. */
export type LoopExecution =
  'eager' | 'compiled' | 'symmetric' | 'compiled symmetric' | 'sharded' | 'compiled sharded';

/** Kills a rank by SIGKILL in such a loop; gives how each survivor took it once all have ended. */
export async function killOne({
  backend,
  size,
  victim,
  elements,
  timeoutMs,
  execution = 'eager',
}: Killing): Promise<Survival[]> {
  return await withRanks(
    'loop',
    size,
    async (ranks) => {
      await Promise.all(ranks.map((rank) => rank.printed('running')));
      const killedMs = Date.now();
      ranks[victim]!.child.kill('SIGKILL');
      const results = await Promise.all(ranks.map(({ result }) => result));
      return results.flatMap(({ code, stdout, stderr }, rank) => {
        if (rank === victim) return [];
        const line = stdout.split('\n').find((text) => text.startsWith('{'));
        if (line === undefined)
          throw new Error(`rank ${rank} printed nothing, and ended with ${code}:\n${stderr}`);
        const told = JSON.parse(line) as Told;
        return [{ told, delayMs: told.atMs - killedMs, code }];
      });
    },
    [String(elements), 'exit', String(timeoutMs), backend, '0', execution],
  );
}

/** `rank 0 was told after 31 ms (exit code 1): allReduce: ...`, a line for each survivor. */
export function describeSurvivals(survivals: readonly Survival[]): string {
  return survivals
    .map(
      ({ told, delayMs, code }) =>
        `rank ${told.rank} was told after ${delayMs} ms (exit code ${code}): ${told.message}`,
    )
    .join('\n');
}
