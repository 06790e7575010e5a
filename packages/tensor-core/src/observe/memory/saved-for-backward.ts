import { requireTensor } from '../../op/require-tensor.ts';
import { TapeNode } from '../../tensor/tape/tape.ts';
import { LeafNode, edgesOf } from '../../tensor/tensor.ts';
import type { DType } from '../../base/dtype.ts';
import type { Shape } from '../../base/shape.ts';
import type { Storage } from '../../tensor/storage/storage.ts';
import type { Tensor } from '../../tensor/tensor.ts';

/** A storage that the tape keeps for the backward pass. */
export interface SavedForBackward {
  /** The op whose gradient reads it; the first to run, if there are several. */
  readonly op: string;
  /** Names of the ranges that the op ran in, outermost first. */
  readonly range: readonly string[];
  /** As the op saw it; a view may be a part of the storage. */
  readonly dtype: DType;
  readonly shape: Shape;
  /** Of the whole storage. */
  readonly byteLength: number;
  /** Its address, as in a `MemoryRecord`. */
  readonly address: number;
  /** Whether it is a parameter cast by autocast rather than an activation. */
  readonly isParameterCast: boolean;
}

/**
 * What the tape of `root` keeps alive for the backward pass, each storage once, in the order of the calls that saved it.
 * Leaves, which are alive anyway, are left out.
 */
export function savedForBackward(root: Tensor): SavedForBackward[] {
  requireTensor('savedForBackward', root);
  const start = root.gradientEdge;
  if (!(start instanceof TapeNode)) return [];
  const { nodes, leaves } = walk(start);
  const found = new Map<Storage, SavedForBackward>();
  for (const node of nodes) {
    for (const { tensor, source } of node.saved) {
      const { storage, dtype, shape } = tensor;
      if (leaves.has(storage) || found.has(storage)) continue;
      found.set(storage, {
        op: node.op.name,
        range: node.range?.path ?? [],
        dtype,
        shape,
        byteLength: storage.byteLength,
        address: storage.buffer.address,
        isParameterCast: isLeafOrViewOfOne(source),
      });
    }
  }
  return [...found.values()];
}

function isLeafOrViewOfOne(source: object | null): boolean {
  let edge = source;
  while (edge instanceof TapeNode && 'layout' in edge.op) edge = edge.edges[0] ?? null;
  return edge instanceof LeafNode;
}

/** All entries that lead to `start`, each after those that it depends on, without recursion. */
function walk(start: TapeNode): { nodes: Set<TapeNode>; leaves: Set<Storage> } {
  const nodes = new Set<TapeNode>();
  const leaves = new Set<Storage>();
  const pending: { node: TapeNode; next: number }[] = [{ node: start, next: 0 }];
  const seen = new Set<TapeNode>([start]);
  for (let top = pending.at(-1); top; top = pending.at(-1)) {
    const edge = edgesOf(top.node)[top.next++];
    if (edge === undefined) {
      nodes.add(top.node);
      pending.pop();
    } else if (edge instanceof LeafNode) leaves.add(edge.tensor.storage);
    else if (edge !== null && !seen.has(edge)) {
      seen.add(edge);
      pending.push({ node: edge, next: 0 });
    }
  }
  return { nodes, leaves };
}
