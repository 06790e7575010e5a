import {
  type ComputeOp,
  type MemoryView,
  type Tensor,
  apply,
  contiguous,
  copyInPlace,
  defineOp,
  noGrad,
} from '@roofline/tensor-core';
import type { CollectiveKind } from './backend.ts';
import { describeCall } from './describe-call.ts';
import { type GroupInternals, internalsOf } from './group-internals.ts';
import type { Call, CallTerms } from './prepared-call.ts';

/** Calls in place that a compiled function may hold: each is an op that writes its output. */
export const replayedKinds: readonly CollectiveKind[] = [
  'allReduce',
  'reduce',
  'broadcast',
  'allGather',
  'reduceScatter',
  'allToAll',
];

/** Which operand of the op a call works on, and how many bytes from its start: a piece may lie in the whole. */
interface Place {
  readonly operand: number;
  readonly byteOffset: number;
}

interface InPlaceAttributes {
  readonly group: object;
  readonly terms: CallTerms;
  /** Null where this rank gives nothing, or gets nothing. */
  readonly input: Place | null;
  readonly output: Place | null;
}

type InPlaceOp = ComputeOp<InPlaceAttributes>;

/** The op of a call that writes its first operand, or of one that writes nothing. */
function define(kind: CollectiveKind, writes: boolean): InPlaceOp {
  const start = (
    operands: readonly MemoryView[],
    attributes: InPlaceAttributes,
    { isCaptured }: { readonly isCaptured: boolean },
  ) => {
    const at = (place: Place | null): MemoryView | null => {
      if (place === null) return null;
      const view = operands[place.operand]!;
      return { ...viewOf(view), address: view.address + place.byteOffset };
    };
    const [input, output] = [at(attributes.input), at(attributes.output)];
    internals(attributes).startOnMemory({
      terms: attributes.terms,
      ...{ input, output, isCaptured, isInPlace: true },
    });
  };
  return defineOp<InPlaceAttributes>({
    name: kind,
    autocast: 'none',
    infer: ([y]) => (writes ? [{ shape: y!.shape, dtype: y!.dtype }] : []),
    ...(writes && { mutates: [0] }),
    effects: {
      kind: 'ordered',
      orderOf: (attributes) => internals(attributes).programs,
      describe: (_, __, { terms: { details = [], like = null } }) => describeCall(kind, details, like),
    },
    cuda: {
      kind: 'custom',
      launch: (context, operands, _, attributes) => start(operands, attributes, context),
    },
    cpu: {
      kind: 'memory',
      run: (operands, _, attributes) => start(operands, attributes, { isCaptured: false }),
    },
  });
}

function internals({ group, terms }: InPlaceAttributes): GroupInternals {
  return internalsOf(terms.kind, group);
}

/** A tensor is a view of its memory, whose places are not its own properties. */
function viewOf(view: MemoryView): MemoryView {
  const { shape, dtype, strides, offset, storage, size, byteLength, isContiguous, address } = view;
  return { shape, dtype, strides, offset, storage, size, byteLength, isContiguous, address };
}

const ops = new Map(
  replayedKinds.map((kind) => [kind, { writing: define(kind, true), reading: define(kind, false) }]),
);

/** Runs a call of a group as an op, so that compiled functions repeat it. Strided tensors travel as copies. */
export function applyInPlace(group: object, call: Call): void {
  const { input = null, output = null, ...terms } = call;
  noGrad(() => {
    const handles: Tensor[] = [];
    const dense = (x: Tensor) => {
      const made = contiguous(x);
      handles.push(made);
      return made;
    };
    const [from, to] = [input && dense(input), output && (output === input ? null : dense(output))];
    const written = output === input ? from : to;
    const { operands, ...places } = placesOf(from, written);
    const { writing, reading } = ops.get(terms.kind)!;
    const like = terms.like ? { shape: terms.like.shape, dtype: terms.like.dtype } : null;
    const attributes = { group, terms: { ...terms, like }, ...places };
    handles.push(...apply(written ? writing : reading, operands, attributes));
    if (output && !output.isContiguous) copyInPlace(output, written!);
    for (const handle of handles) handle.dispose();
  });
}

/** What an op takes for a call that reads and writes these; where they share memory, the larger, of which the other is a piece. */
function placesOf(
  from: Tensor | null,
  to: Tensor | null,
): { readonly operands: readonly Tensor[] } & Pick<InPlaceAttributes, 'input' | 'output'> {
  const start = { operand: 0, byteOffset: 0 };
  if (!from || !to) return { operands: [(from ?? to)!], input: from && start, output: to && start };
  if (from.storage !== to.storage)
    return { operands: [to, from], input: { operand: 1, byteOffset: 0 }, output: start };
  const whole = from.byteLength > to.byteLength ? from : to;
  const within = (x: Tensor) => ({ operand: 0, byteOffset: x.address - whole.address });
  return { operands: [whole], input: within(from), output: within(to) };
}
