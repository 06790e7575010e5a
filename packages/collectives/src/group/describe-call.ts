import { type TensorSpec, formatShape } from '@roofline/tensor-core';
import { createHash } from 'node:crypto';
import { CollectiveError } from '../errors.ts';
import { rankNames } from '../ranks/rank-names.ts';
import type { Loss, Outcome } from './backend.ts';

/** Backends compare no more bytes. */
const longestDescription = 200;

/** What all ranks must agree on, in a text short enough to travel before the data. */
export function describeCall(op: string, details: readonly string[], x: TensorSpec | null): string {
  const named = details.length > 0 ? `${op}(${details.join(', ')})` : op;
  const text = x ? `${named} ${x.dtype} ${formatShape(x.shape)}` : named;
  if (text.length <= longestDescription) return text;
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 16);
  return `${text.slice(0, longestDescription - 24)}... #${digest}`;
}

/** The world's ranks of a group, and which of its members this is. */
export interface Members {
  readonly ranks: readonly number[];
  readonly rank: number;
}

/** The error of a call that did not end well; null where it did. `peer` is the other side of a send or receive. */
export function errorOf(
  op: string,
  outcome: Outcome,
  members: Members,
  own: string,
  peer: number | null,
): CollectiveError | null {
  if (outcome.status === 'done') return null;
  if (outcome.status === 'mismatch') return mismatchError(op, outcome.descriptions, members, own, peer);
  return lossError(op, outcome, members);
}

function mismatchError(
  op: string,
  descriptions: readonly string[],
  { ranks, rank }: Members,
  own: string,
  peer: number | null,
): CollectiveError {
  const callers = new Map<string, number[]>([[own, [ranks[rank]!]]]);
  descriptions.forEach((description, i) => {
    const member = peer ?? i;
    if (member === rank) return;
    callers.set(description, [...(callers.get(description) ?? []), ranks[member]!]);
  });
  const peers = [...callers].filter(([description]) => description !== own).flatMap(([, who]) => who);
  const asked = [...callers].map(([description, who]) => `${rankNames(who)}: ${description}`).join('; ');
  return new CollectiveError(
    `${op}: the ranks do not call the same (${asked}). All must call the same ops in the same order, with tensors of ` +
      'one shape and dtype; nothing was sent.',
    { op, rank: ranks[rank]!, peers },
  );
}

const lossTexts: Readonly<Record<Loss, string>> = {
  gone: 'is gone: its process has ended or was killed, it has left the group, or the network is cut',
  late: 'did not come in time',
  differs: 'called something else',
};

function lossError(
  op: string,
  { losses, message }: Extract<Outcome, { status: 'failed' }>,
  { ranks, rank }: Members,
): CollectiveError {
  const lost = [...losses].filter(([member]) => member !== rank);
  const reasons = lost.map(([member, loss]) => `rank ${ranks[member]} ${lossTexts[loss]}`);
  // Where others say that they lost this rank, it has stood still for too long.
  if (losses.has(rank)) reasons.push('the others have given up waiting for this rank');
  const why = reasons.length > 0 ? `${reasons.join('; ')} (${message})` : message;
  return new CollectiveError(
    `${op}: failed on rank ${ranks[rank]}: ${why}. This group is of no more use: dispose it; those left can go on ` +
      'with subGroup().',
    { op, rank: ranks[rank]!, peers: lost.map(([member]) => ranks[member]!) },
  );
}
