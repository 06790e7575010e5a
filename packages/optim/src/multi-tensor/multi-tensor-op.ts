import {
  type ComputeOp,
  type CudaContext,
  type InPlaceScaling,
  type MemoryView,
  type Tensor,
  type UpdateByProducts,
  type UpdateByTensor,
  applyLive,
  defineOp,
} from '@roofline/tensor-core';
import { kernelFile, noDefines } from '../kernel-file.ts';
import type { Copies } from './multi-tensor.ts';

/** What is special to an op over a number of tensors, in terms of its lists. */
export interface MultiTensorDefinition<A> extends Omit<
  ComputeOp<A>,
  'kind' | 'autocast' | 'infer' | 'mutates' | 'cuda' | 'cpu'
> {
  /** How many of the lists, the first ones, are written. */
  readonly written: number;
  /** How many lists there are; inputs after them are shared by all tensors. */
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
  /** Of an update whose attributes are but a few numbers. */
  readonly byCoefficients?: UpdateByCoefficients<A>;
  /** Of an op that multiplies its one list. */
  readonly scales?: InPlaceScaling<A>;
  /** Over one tensor: its roles, then what is shared. Gives the written ones. */
  readonly cpu: ComputeOp<A>['cpu'];
}

/** Addresses: of coefficients, and of a factor of all gradients; 0 for none. */
export interface NumbersInMemory {
  readonly coefficients: number;
  readonly factor: number;
}

/** How an update by numbers in memory multiplies gradients itself; `launch` gets the lists of dYᵀ and of X in place of theirs. */
export interface ProductsByCoefficients extends Omit<UpdateByProducts, 'launch'> {
  readonly launch: UpdateByCoefficients<never>['launch'];
}

/** How an update gets its numbers from memory, so that a compiled program can make several calls of it. */
export interface UpdateByCoefficients<A> {
  /** At most six. */
  numbers(attributes: A): readonly number[];
  /** As the definition's `launch`, by numbers in memory; the last list is that of gradients. */
  launch(
    context: CudaContext,
    lists: readonly (readonly MemoryView[])[],
    shared: readonly MemoryView[],
    numbers: NumbersInMemory,
    copies?: Copies,
  ): void;
  /** Default: it reads gradients from memory. */
  readonly byProducts?: ProductsByCoefficients;
}

// As many as write_coefficients of kernels/write_coefficients.cu writes.
const coefficientCount = 6;
const coefficientsKernel = kernelFile('write_coefficients', {
  ...{ coefficients: 'pointer', c0: 'float32', c1: 'float32', c2: 'float32' },
  ...{ c3: 'float32', c4: 'float32', c5: 'float32' },
});

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
  const { written, lists, writesCopies = false, byCoefficients, scales, launch, cpu, ...rest } = definition;
  // A compiled program's replays come with the same inputs, and their lists keep what `launchOverTensors` has prepared.
  const splits = new WeakMap<readonly MemoryView[], Split>();
  return defineOp<A>({
    ...rest,
    autocast: 'none',
    infer: (inputs) => inputs.slice(0, written * count),
    mutates: Array.from({ length: written * count }, (_, i) => i),
    cuda: {
      kind: 'custom',
      rewrites: {
        copied: writesCopies ? count : 0,
        ...(byCoefficients && { byTensor: byTensor(definition, byCoefficients) }),
        ...(scales && { scales }),
      },
      launch(context, inputs, _, attributes, fused) {
        let split = splits.get(inputs);
        if (!split) splits.set(inputs, (split = splitOf(inputs, count, lists)));
        launch(context, split.lists, split.shared, attributes, fused?.copies);
      },
    },
    cpu,
  });
}

function byTensor<A>(
  { written, lists }: MultiTensorDefinition<A>,
  { numbers, launch, byProducts }: UpdateByCoefficients<A>,
): UpdateByTensor<A> {
  const launchOver =
    (ownLaunch: typeof launch, listCount: number): UpdateByTensor<A>['launch'] =>
    (context, inputs, outputs, inMemory, copies) => {
      const split = splitOf(inputs, outputs.length / written, listCount);
      ownLaunch(context, split.lists, split.shared, inMemory, copies);
    };
  return {
    written,
    roles: lists,
    coefficientCount,
    coefficients(context, { address }, attributes) {
      const [c0 = 0, c1 = 0, c2 = 0, c3 = 0, c4 = 0, c5 = 0] = numbers(attributes);
      context
        .kernel(coefficientsKernel(noDefines))
        .launch(
          [1, 1, 1],
          1,
          0,
          coefficientsKernel.byName({ coefficients: address, c0, c1, c2, c3, c4, c5 }),
        );
    },
    launch: launchOver(launch, lists),
    ...(byProducts && { byProducts: { ...byProducts, launch: launchOver(byProducts.launch, lists + 1) } }),
  };
}
