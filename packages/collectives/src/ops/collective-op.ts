import {
  AutogradError,
  type ComputeOp,
  type Cost,
  type MemoryView,
  type Tensor,
  type TensorSpec,
  applyOne,
  byteSize,
  contiguous,
  defineOp,
  formatShape,
  isGradEnabled,
  sizeOf,
} from '@roofline/tensor-core';
import { ffi } from '@roofline/cuda/host';
import type { Reduction } from '../group/backend.ts';
import { internalsOf } from '../group/group-internals.ts';
import type { CallTerms } from '../group/prepared-call.ts';
import { describeCall } from '../group/describe-call.ts';
import type { ProcessGroup } from '../group/process-group.ts';

/** What a collective is told besides its tensor. */
export interface CollectiveAttributes {
  readonly group: ProcessGroup;
  /** Of those that reduce. */
  readonly reduction?: Reduction;
  /** The root, or the peer of a send or receive: a rank of the group; by how many ranks a shift goes. */
  readonly root?: number;
}

/** Writes of a lowering itself, in the order of the current stream. */
interface Memory {
  /** Whether all of this becomes part of a CUDA graph. */
  readonly isCaptured: boolean;
  fill(to: MemoryView, value: number): void;
  copy(from: MemoryView, to: MemoryView): void;
}

/** The memory of a call on this rank: null where it gives nothing, or gets nothing. */
interface Sides {
  readonly input: MemoryView | null;
  readonly output: MemoryView | null;
}

interface CollectiveDefinition {
  readonly name: string;
  infer(x: TensorSpec, attributes: CollectiveAttributes): TensorSpec;
  /** The call; its `like` is what all ranks must have alike. */
  terms(x: TensorSpec, y: TensorSpec, attributes: CollectiveAttributes): CallTerms;
  /** What the call works on, after writes of this rank's own. Default: reads the input, writes the output. */
  sides?(
    sides: { readonly x: MemoryView; readonly y: MemoryView },
    attributes: CollectiveAttributes,
    memory: Memory,
  ): Sides;
  /** Bytes over the link for each byte of the larger of input and output. */
  linkShare(size: number): number;
  /** The gradient of the input `x`; null where none comes back. */
  gradient(gradient: Tensor, attributes: CollectiveAttributes, x: TensorSpec): Tensor | null;
}

/** A collective as an op: one tensor in, one out, and a call of the group's backend between them. */
export function defineCollective(definition: CollectiveDefinition): ComputeOp<CollectiveAttributes> {
  const { name, infer, terms, sides, linkShare, gradient } = definition;
  const start = (x: MemoryView, y: MemoryView, attributes: CollectiveAttributes, memory: Memory) => {
    const { input, output } = sides?.({ x, y }, attributes, memory) ?? { input: x, output: y };
    internalsOf(name, attributes.group).startOnMemory([
      {
        terms: terms(x, y, attributes),
        input,
        output,
        isCaptured: memory.isCaptured,
        isInPlace: false,
      },
    ]);
  };
  return defineOp<CollectiveAttributes>({
    name,
    autocast: 'none',
    infer: ([x], attributes) => [infer(x!, attributes)],
    effects: {
      kind: 'ordered',
      orderOf: ({ group }) => internalsOf(name, group).programs,
      describe([x], [y], attributes) {
        const { kind, details = [], like = null } = terms(x!, y!, attributes);
        if (kind === 'send' || kind === 'recv') return null;
        return describeCall(kind, details, like);
      },
    },
    cost: ([x], [y], { group }): Cost => {
      const [inputBytes, outputBytes] = [bytesOf(x!), bytesOf(y!)];
      return {
        flops: 0,
        bytesMoved: inputBytes + outputBytes,
        linkBytes: linkShare(group.size) * Math.max(inputBytes, outputBytes),
      };
    },
    gradient: ({ attributes, gradients: [g], inputSpecs: [x] }) => [g ? gradient(g, attributes, x!) : null],
    cuda: {
      kind: 'custom',
      launch(context, [x], [y], attributes) {
        start(x!, y!, attributes, {
          isCaptured: context.isCaptured,
          fill: (to, value) => context.fillBytes(to.address, value, to.byteLength),
          copy: (from, to) => context.copy(from, to),
        });
      },
    },
    cpu: { kind: 'memory', run: ([x], [y], attributes) => start(x!, y!, attributes, hostMemory) },
  });
}

/** Applies a collective's op, once the group's backend is known to take the tensor. */
export function applyCollective(
  op: ComputeOp<CollectiveAttributes>,
  x: Tensor,
  attributes: CollectiveAttributes,
): Tensor {
  const dense = contiguous(x);
  try {
    return applyOne(op, [dense], attributes);
  } finally {
    dense.dispose();
  }
}

/** Throws one of our errors, which names `op`, unless `group` is one whose collectives can take `x`. */
export function checkInput(op: string, x: Tensor, group: ProcessGroup): void {
  internalsOf(op, group).checkInput(op, x);
}

/** Throws an AutogradError where a reduction without a gradient is asked for one. */
export function checkDifferentiable(op: string, x: Tensor, reduction: Reduction): void {
  if (!x.requiresGrad || !isGradEnabled() || reduction === 'sum' || reduction === 'average') return;
  throw new AutogradError(
    `${op}: a ${reduction} over ranks has no gradient, and ${formatShape(x.shape)} requires one; call it inside noGrad(), or ` +
      'detach() the tensor.',
  );
}

function bytesOf({ shape, dtype }: TensorSpec): number {
  return sizeOf(shape) * byteSize(dtype);
}

const hostMemory: Memory = {
  isCaptured: false,
  fill: (to, value) => void bytesAt(to).fill(value),
  copy: (from, to) => bytesAt(to).set(bytesAt(from)),
};

function bytesAt({ address, byteLength }: MemoryView): Uint8Array {
  return byteLength === 0 ? new Uint8Array() : new Uint8Array(ffi().view(address, byteLength));
}
