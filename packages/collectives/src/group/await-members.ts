import { CollectiveError, StoreError } from '../errors.ts';
import { rankNames } from '../ranks/rank-names.ts';
import type { Store } from '../store/store.ts';

export interface Rendezvous {
  /** The rank in the group, and the ranks of the world that make it up. */
  readonly rank: number;
  readonly ranks: readonly number[];
  readonly store: Store;
  /** Begins the keys of this group. */
  readonly prefix: string;
  readonly timeoutMs: number;
  /** The call by which this rank joins. */
  readonly op: 'initProcessGroup' | 'subGroup';
}

/** What may keep the others away from a call. */
const remedies = {
  initProcessGroup: 'has it started, with the same WORLD_SIZE and store?',
  subGroup: 'does it call subGroup() too, with the same list of ranks in the same order?',
} as const;

/** What a member of a group sets when it has come. */
export function memberKey(prefix: string, member: number): string {
  return `${prefix}/member/${member}`;
}

/**
 * Leaves `word` for the other ranks of a group and waits until all have come. Returns what each has left. Throws a
 * CollectiveError that names those that did not come.
 */
export async function awaitMembers(
  { rank, ranks, store, prefix, timeoutMs, op }: Rendezvous,
  word = '',
): Promise<string[]> {
  const keyOf = (member: number) => memberKey(prefix, member);
  await store.set(keyOf(rank), word);
  const keys = ranks.map((_, member) => keyOf(member));
  try {
    await store.wait(keys, { timeoutMs });
  } catch (cause) {
    if (!(cause instanceof StoreError) || cause.missingKeys.length === 0) throw cause;
    const { missingKeys } = cause;
    const late = ranks.filter((_, member) => missingKeys.includes(keyOf(member)));
    throw new CollectiveError(
      `${op}: ${rankNames(late)} did not come within ${timeoutMs} ms (rank ${ranks[rank]} of ${ranks.length} waited); ` +
        remedies[op],
      { op, rank: ranks[rank]!, peers: late },
      { cause },
    );
  }
  const words = await Promise.all(keys.map((key) => store.get(key, { timeoutMs })));
  return words.map((bytes) => new TextDecoder().decode(bytes));
}
