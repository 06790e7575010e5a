import { factsOf, type CollectiveOp } from '../benchmarks/allreduce/operations.ts';
import type { Axis, Layout } from './layout.ts';
import type { LinkFit } from './machine.ts';

/** How devices are connected. */
export interface Links {
  /** As measured between the devices of one node, for some numbers of ranks. */
  readonly inside: readonly LinkFit[];
  /** Devices of a node. */
  readonly perNode: number;
  /** What each device sends to other nodes in a second; null where all are in one. */
  readonly outsideBytesPerSecond: number | null;
}

/** One axis of a layout: how many ranks a group has, and how many of them are in one node. */
export interface Span {
  readonly ranks: number;
  readonly perNode: number;
}

export function spanOf(layout: Layout, axis: Axis, { perNode }: Links): Span {
  const { tensor, shard } = layout;
  const between = { tensor: 1, context: tensor, shard: tensor, replicate: tensor * shard }[axis];
  const ranks = layout[axis];
  return { ranks, perNode: Math.max(1, Math.min(ranks, Math.floor(perNode / between))) };
}

/**
 * Milliseconds of a collective of `bytes`, as nccl-tests counts them: α for a call, which grows with the logarithm of the
 * ranks as in trees, and the bytes that each link carries. All ranks of a node send to others at once, so that a group with
 * k of them there has k times what one sends. Neighbours that send to one another, as in a ring, are two for each link: one of a node
 * sends to another.
 */
export function collectiveMs(
  op: CollectiveOp,
  bytes: number,
  { ranks, perNode }: Span,
  links: Links,
): number {
  if (ranks === 1) return 0;
  const { inside, outsideBytesPerSecond } = links;
  const fit = fitFor(ranks, inside);
  const isOutside = ranks > perNode && outsideBytesPerSecond !== null;
  const isOfPairs = op === 'sendrecv';
  const busBytesPerSecond = Math.min(
    fit?.busOfOp[op] ?? fit?.busBytesPerSecond ?? Infinity,
    isOutside ? (isOfPairs ? 1 : perNode) * outsideBytesPerSecond : Infinity,
  );
  const latencyMs = fit ? (fit.latencyMs * Math.log2(isOfPairs ? 2 : ranks)) / Math.log2(fit.ranks) : 0;
  return latencyMs + (1000 * bytes * factsOf[op].busFactor(ranks)) / busBytesPerSecond;
}

/** That of the most ranks that are not more, else of the fewest. */
function fitFor(ranks: number, fits: readonly LinkFit[]): LinkFit | undefined {
  return fits.findLast((fit) => fit.ranks <= ranks) ?? fits[0];
}
