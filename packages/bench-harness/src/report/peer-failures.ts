import type { FailedPeer } from '../peer/cell-peer.ts';
import { firstLine, listSome } from './values-in-words.ts';

/** Our cells for which PyTorch has no time, and why: one sentence a reason. */
export function peerFailures(
  cells: readonly {
    readonly name: string;
    readonly peer: FailedPeer | { readonly status: 'ok' } | null | undefined;
  }[],
): string[] {
  const failed = cells.flatMap(({ name, peer }) =>
    peer && peer.status !== 'ok' ? [{ name, reason: reasonOf(peer) }] : [],
  );
  return [...Map.groupBy(failed, ({ reason }) => reason)].map(
    ([reason, group]) => `PyTorch could not run ${listSome(group.map(({ name }) => name))}: ${reason}.`,
  );
}

/** Of memory that is spent the first sentence: the bytes that follow are of each cell. */
function reasonOf({ status, error }: FailedPeer): string {
  const line = firstLine(error.message);
  return (status === 'out-of-memory' ? line.split('. ', 1)[0]! : line).replace(/\.$/, '');
}
