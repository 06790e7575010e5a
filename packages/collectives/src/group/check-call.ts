import { RooflineError, describeValue } from '@roofline/tensor-core';
import { CollectiveError } from '../errors.ts';
import { type Reduction, reductions } from './backend.ts';

/** Throws a RooflineError (code ARGUMENT) unless `group` is a process group. */
export function requireGroup(
  owner: string,
  group: { readonly allReduce: unknown; readonly ranks: unknown },
): void {
  if (typeof group?.allReduce === 'function' && Array.isArray(group.ranks)) return;
  throw new RooflineError('ARGUMENT', `${owner}: takes a process group, as initProcessGroup() gives it.`);
}

/** Throws a RooflineError (code RANGE) unless `rank` is one of a group's. */
export function checkRank(op: string, what: string, rank: number, size: number): void {
  if (Number.isInteger(rank) && rank >= 0 && rank < size) return;
  throw new RooflineError(
    'RANGE',
    `${op}: ${what} must be a rank of this group, 0 to ${size - 1}, not ${describeValue(rank)}.`,
  );
}

/** Throws unless `peer` is another rank of the group: a RooflineError (code RANGE), or a CollectiveError for this rank itself. */
export function checkPeer(
  op: string,
  peer: number,
  { rank, ranks }: { readonly rank: number; readonly ranks: readonly number[] },
): void {
  checkRank(op, 'the peer', peer, ranks.length);
  if (peer !== rank) return;
  throw new CollectiveError(`${op}: rank ${peer} cannot ${op} with itself; use copyInPlace().`, {
    op,
    rank: ranks[rank]!,
    peers: [ranks[peer]!],
  });
}

/** Throws a RooflineError (code ARGUMENT) unless there is such a reduction. */
export function checkReduction(op: string, reduction: Reduction): void {
  if (reductions.includes(reduction)) return;
  throw new RooflineError(
    'ARGUMENT',
    `${op}: there is no op ${describeValue(reduction)}; take ${reductions.join(', ')}.`,
  );
}

/** Throws a RooflineError unless `members` are ranks of a group, each once, this one among them. */
export function checkSubGroupRanks(op: string, members: readonly number[], own: number, size: number): void {
  if (!Array.isArray(members))
    throw new RooflineError('ARGUMENT', `${op}: takes a list of ranks, not ${describeValue(members)}.`);
  for (const member of members) checkRank(op, 'a member', member as number, size);
  if (new Set(members).size < members.length)
    throw new RooflineError('ARGUMENT', `${op}: a rank stands twice in ${members.join(', ')}.`);
  if (!members.includes(own))
    throw new RooflineError(
      'ARGUMENT',
      `${op}: rank ${own} is no member of ${members.join(', ')}; only members call it.`,
    );
}
