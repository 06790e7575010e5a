import { describeCell, type E2eCell } from '../benchmarks/e2e/parameters.ts';
import type { E2eResult } from '../benchmarks/e2e/result.ts';
import type { FailedPeer } from '../peer/cell-peer.ts';
import { firstLine, listSome } from './values-in-words.ts';

/** Our cells for which PyTorch has no time, and why: one sentence a reason. */
export function peerFailures(
  cells: readonly { readonly cell: E2eCell; readonly peer: E2eResult['peer'] | undefined }[],
): string[] {
  const failed = cells.flatMap(({ cell, peer }) =>
    peer && peer.status !== 'ok' ? [{ name: describeCell(cell), reason: reasonOf(peer) }] : [],
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
