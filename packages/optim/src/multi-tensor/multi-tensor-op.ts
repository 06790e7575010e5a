import {
  type ComputeOp,
  type CudaContext,
  type MemoryView,
  type Tensor,
  applyLive,
  defineOp,
} from '@roofline/tensor-core';
import type { Copies } from './multi-tensor.ts';

/** What is special to an op over a number of tensors, in terms of its lists. */
export interface MultiTensorDefinition<A> extends Omit<
  ComputeOp<A>,
  'kind' | 'autocast' | 'infer' | 'mutates' | 'cuda' | 'cpu'
> {
  /** How many of the lists, the first ones, are written. */
  readonly written: number;
  /** How many lists there are; inputs behind them are shared by all tensors. */
  readonly lists: number;
  /** Whether `launch` writes copies of the first list in lower precision where it gets their memory. Default false. */
  readonly writesCopies?: boolean;
  /** Over all tensors of a call: `lists[l][t]` plays role l for tensor t. */
  launch(
    context: CudaContext,
    lists: readonly (readonly MemoryView[])[],
    shared: readonly MemoryView[],
    attributes: A,
    copies?: Copies,
  ): void;
  /** Over one tensor: its roles, then what is shared. Gives the written ones. */
  readonly cpu: ComputeOp<A>['cpu'];
}

/**
 * Updates tensors in place; `lists[l][t]` plays role l for tensor t, and all of one t have one shape. `next` gives the
 * attributes of each run over the tensors `from`, `from + 1`... below `to`; see `applyLive`.
 */
export type MultiTensorOp<A> = (
  lists: readonly (readonly Tensor[])[],
  shared: readonly Tensor[],
  next: (from: number, to: number) => A,
) => void;

/**
 * An op that updates any number of tensors in place, without a gradient. A GPU updates all of them in one call;
 * the CPU one at a time, because its work is cut into pieces of one length.
 */
export function multiTensorOp<A>(definition: MultiTensorDefinition<A>): MultiTensorOp<A> {
  const ops = new Map<number, ComputeOp<A>>();
  const opFor = (count: number) => {
    let op = ops.get(count);
    if (!op) ops.set(count, (op = defineForCount(definition, count)));
    return op;
  };
  return (lists, shared, next) => {
    const count = lists[0]!.length;
    const perCall = lists[0]![0]!.device.type === 'cuda' ? count : 1;
    for (let from = 0; from < count; from += perCall) {
      const inputs = lists.flatMap((tensors) => tensors.slice(from, from + perCall));
      const outputs = applyLive(opFor(perCall), [...inputs, ...shared], () => next(from, from + perCall));
      for (const output of outputs) output.dispose();
    }
  };
}

interface Split {
  readonly lists: readonly (readonly MemoryView[])[];
  readonly shared: readonly MemoryView[];
}

function splitOf(inputs: readonly MemoryView[], count: number, lists: number): Split {
  const listAt = (list: number) => inputs.slice(list * count, (list + 1) * count);
  return {
    lists: Array.from({ length: lists }, (_, list) => listAt(list)),
    shared: inputs.slice(lists * count),
  };
}

/** Which inputs an op writes depends on the number of tensors, so each number has an op of its own. */
function defineForCount<A>(definition: MultiTensorDefinition<A>, count: number): ComputeOp<A> {
  const { written, lists, writesCopies = false, launch, cpu, ...rest } = definition;
  // A compiled program's replays come with the same inputs, and their lists keep what `launchOverTensors` has prepared.
  const splits = new WeakMap<readonly MemoryView[], Split>();
  return defineOp<A>({
    ...rest,
    autocast: 'none',
    infer: (inputs) => inputs.slice(0, written * count),
    mutates: Array.from({ length: written * count }, (_, i) => i),
    cuda: {
      kind: 'custom',
      copied: writesCopies ? count : 0,
      launch(context, inputs, _, attributes, __, copies) {
        let split = splits.get(inputs);
        if (!split) splits.set(inputs, (split = splitOf(inputs, count, lists)));
        launch(context, split.lists, split.shared, attributes, copies);
      },
    },
    cpu,
  });
}
