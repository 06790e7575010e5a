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
import { internalsOf } from './group-internals.ts';
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

interface PlacedCall {
  readonly terms: CallTerms;
  /** Null where this rank gives nothing, or gets nothing. */
  readonly input: Place | null;
  readonly output: Place | null;
}

interface InPlaceAttributes {
  readonly group: object;
  /** Those that begin together. */
  readonly calls: readonly PlacedCall[];
}

type InPlaceOp = ComputeOp<InPlaceAttributes>;

/** The op of calls that write so many operands, the first ones. */
function define(name: string, written: number): InPlaceOp {
  const start = (
    operands: readonly MemoryView[],
    { group, calls }: InPlaceAttributes,
    { isCaptured }: { readonly isCaptured: boolean },
  ) => {
    const at = (place: Place | null): MemoryView | null => {
      if (place === null) return null;
      const view = operands[place.operand]!;
      return { ...viewOf(view), address: view.address + place.byteOffset };
    };
    internalsOf(name, group).startOnMemory(
      calls.map(({ terms, input, output }) => ({
        ...{ terms, input: at(input), output: at(output) },
        ...{ isCaptured, isInPlace: true },
      })),
    );
  };
  return defineOp<InPlaceAttributes>({
    name,
    autocast: 'none',
    infer: (operands) => operands.slice(0, written).map(({ shape, dtype }) => ({ shape, dtype })),
    ...(written > 0 && { mutates: Array.from({ length: written }, (_, i) => i) }),
    effects: {
      kind: 'ordered',
      orderOf: ({ group }) => internalsOf(name, group).programs,
      describe: (_, __, { calls }) =>
        calls
          .map(({ terms: { kind, details = [], like = null } }) => describeCall(kind, details, like))
          .join(' with '),
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

const ops = new Map<string, InPlaceOp>();

/** Which operands an op writes depends on their number, so each has an op of its own. */
function opOf(kinds: readonly CollectiveKind[], written: number): InPlaceOp {
  const [first] = kinds;
  const name = kinds.every((kind) => kind === first) ? first! : 'coalesce';
  const key = `${name} ${written}`;
  let op = ops.get(key);
  if (!op) ops.set(key, (op = define(name, written)));
  return op;
}

/** A tensor is a view of its memory, whose places are not its own properties. */
function viewOf(view: MemoryView): MemoryView {
  const { shape, dtype, strides, offset, storage, size, byteLength, isContiguous, address } = view;
  return { shape, dtype, strides, offset, storage, size, byteLength, isContiguous, address };
}

/** Runs calls of a group, together, as an op, so that compiled functions repeat them. Strided tensors travel as copies. */
export function applyInPlace(group: object, calls: readonly Call[]): void {
  if (calls.length === 0) return;
  noGrad(() => {
    const handles: Tensor[] = [];
    const dense = (x: Tensor) => {
      const made = contiguous(x);
      handles.push(made);
      return made;
    };
    const placed = calls.map(({ input = null, output = null, ...terms }) => {
      const [from, to] = [input && dense(input), output && (output === input ? null : dense(output))];
      const written = output === input ? from : to;
      const like = terms.like ? { shape: terms.like.shape, dtype: terms.like.dtype } : null;
      const { operands, ...places } = placesOf(from, written);
      return { call: { terms: { ...terms, like }, ...places }, operands, written, target: output };
    });
    const mutated = placed.flatMap(({ written, operands }) => (written ? [operands[0]!] : []));
    const read = placed.flatMap(({ written, operands }) => operands.slice(written ? 1 : 0));
    const kinds = calls.map(({ kind }) => kind);
    const attributes = { group, calls: numbered(placed, mutated.length) };
    handles.push(...apply(opOf(kinds, mutated.length), [...mutated, ...read], attributes));
    for (const { target, written } of placed)
      if (target && !target.isContiguous) copyInPlace(target, written!);
    for (const handle of handles) handle.dispose();
  });
}

/** A call with operands of its own, which its places name; the first is `written`, if any is. */
interface LonePlacedCall {
  readonly call: PlacedCall;
  readonly operands: readonly Tensor[];
  readonly written: Tensor | null;
}

/** The calls with places among the operands of all: first those that are written. */
function numbered(placed: readonly LonePlacedCall[], mutated: number): PlacedCall[] {
  let [nextMutated, nextRead] = [0, mutated];
  return placed.map(({ call: { terms, input, output }, operands, written }) => {
    const numbers = operands.map((_, i) => (written && i === 0 ? nextMutated++ : nextRead++));
    const at = (place: Place | null) => place && { ...place, operand: numbers[place.operand]! };
    return { terms, input: at(input), output: at(output) };
  });
}

/** What an op takes for a call that reads and writes these: both, or, where one lies in the other as its piece, the larger. */
function placesOf(
  from: Tensor | null,
  to: Tensor | null,
): { readonly operands: readonly Tensor[] } & Pick<PlacedCall, 'input' | 'output'> {
  const start = { operand: 0, byteOffset: 0 };
  if (!from || !to) return { operands: [(from ?? to)!], input: from && start, output: to && start };
  const [whole, piece] = from.byteLength > to.byteLength ? [from, to] : [to, from];
  // Apart in one storage, as two parts of a flat tensor, each is an operand: compiled functions order calls by what they use.
  if (!liesIn(piece, whole))
    return { operands: [to, from], input: { operand: 1, byteOffset: 0 }, output: start };
  const within = (x: Tensor) => ({ operand: 0, byteOffset: x.address - whole.address });
  return { operands: [whole], input: within(from), output: within(to) };
}

function liesIn(piece: Tensor, whole: Tensor): boolean {
  const start = piece.address - whole.address;
  return piece.storage === whole.storage && start >= 0 && start + piece.byteLength <= whole.byteLength;
}
