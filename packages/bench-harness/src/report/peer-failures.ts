import type { FailedPeer } from '../peer/cell-peer.ts';
import { firstLine, listSome } from './values-in-words.ts';

/** Our cells for which a peer has no time, and why: one sentence a peer and reason. */
export function peerFailures(
  cells: readonly {
    readonly name: string;
    /** Of the peer: `PyTorch`. */
    readonly title: string;
    readonly peer: FailedPeer | { readonly status: 'ok' } | null | undefined;
  }[],
): string[] {
  const failed = cells.flatMap(({ name, title, peer }) =>
    peer && peer.status !== 'ok' ? [{ name, title, reason: reasonOf(peer) }] : [],
  );
  return [...Map.groupBy(failed, ({ title, reason }) => `${title} ${reason}`).values()].map(
    (group) =>
      `${group[0]!.title} could not run ${listSome(group.map(({ name }) => name))}: ${group[0]!.reason}.`,
  );
}

/** Of running out of memory only the first sentence: the bytes after it differ from cell to cell. */
function reasonOf({ status, error }: FailedPeer): string {
  const line = firstLine(error.message);
  return (status === 'out-of-memory' ? line.split('. ', 1)[0]! : line).replace(/\.$/, '');
}
