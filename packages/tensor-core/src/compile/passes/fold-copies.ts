import { byteSize } from '../../base/dtype.ts';
import { isIntermediate } from '../graph/liveness.ts';
import { hasEffects } from '../graph/ordered-effects.ts';
import { widestWriteBytes } from '../../op/destination.ts';
import { copyOp } from '../../ops/copy/contiguous.ts';
import { copyInPlaceOp } from '../../ops/copy/in-place.ts';
import type { Call, Operand, Graph } from '../graph/graph.ts';
import { type Layout, isContiguous } from '../../base/shape.ts';
import { isOp } from './is-op.ts';
import { areDisjoint, usesOf } from './operands.ts';
import { rewritesOf } from './rewrites-of.ts';

/** What a copy reads and writes. */
interface Copied {
  readonly from: Operand;
  readonly to: Operand;
}

/**
 * Drops copies, into new memory or over other tensors such as gradients' flat buffers, of what only they read, where the call that makes
 * that can write it to its place itself, without more memory.
 */
export function foldCopies(graph: Graph): Graph {
  const calls = [...graph.calls];
  let uses = usesOf(calls);
  for (let at = 0; at < calls.length; at++) {
    const copied = copiedBy(calls[at]!);
    const writer = copied && onlyWriter(graph, uses, copied.from);
    if (!writer) continue;
    const place = calls.indexOf(writer);
    if (!isThere(graph, copied, calls.indexOf(uses.get(copied.to.storage)![0]!) < place)) continue;
    const folded = writingAs(writer, copied, calls.slice(place + 1, at));
    if (!folded) continue;
    calls[place] = folded;
    calls.splice(at, 1);
    uses = usesOf(calls);
    at--;
  }
  return { ...graph, calls };
}

function copiedBy({ op, live, inputs, outputs }: Call): Copied | null {
  if (live !== null || !(isOp(op, copyOp) || isOp(op, copyInPlaceOp))) return null;
  const [from, to] = [inputs.at(-1)!, outputs[0]!];
  return from.dtype === to.dtype ? { from, to } : null;
}

/** Whether the memory that is copied to is there when its contents are made, or takes no more than what is copied. */
function isThere({ storages }: Graph, { from, to }: Copied, isUsedBefore: boolean): boolean {
  const [of, own] = [storages[from.storage]!, storages[to.storage]!];
  return own.source.kind !== 'made' || isUsedBefore || own.byteLength <= of.byteLength;
}

/** The call that makes what a copy reads, if nothing else uses that. */
function onlyWriter(graph: Graph, uses: Map<number, Call[]>, { storage }: Operand): Call | null {
  const [writer, , ...others] = uses.get(storage)!;
  return others.length === 0 && isIntermediate(graph, storage) ? writer! : null;
}

/** `writer` with the copy's output in place of what was copied; null where it cannot write that, ahead of the calls `between` them. */
function writingAs(writer: Call, { from, to }: Copied, between: readonly Call[]): Call | null {
  const written = writer.outputs.filter(({ storage }) => storage === from.storage);
  const [output] = written;
  if (written.length !== 1 || !output!.isContiguous || output!.size !== from.size) return null;
  const layout = layoutThrough(output!, from, to);
  if (!layout) return null;
  const placed: Operand = {
    ...output!,
    ...layout,
    storage: to.storage,
    isContiguous: isContiguous(layout.shape, layout.strides),
  };
  if (!canWrite(writer, placed)) return null;
  // What it reads and makes besides may be in the copy's storage, if that is a joint one, but must not overlap it.
  const touched = [writer, ...between].flatMap(({ inputs, outputs }) => [...inputs, ...outputs]);
  if (!touched.every((other) => areDisjoint(other, placed))) return null;
  return { ...writer, outputs: writer.outputs.map((other) => (other === output ? placed : other)) };
}

function canWrite(call: Call, placed: Operand): boolean {
  const { cuda, mutates } = call.op;
  if (mutates || hasEffects(call)) return false;
  if (placed.isContiguous) return (placed.offset * byteSize(placed.dtype)) % widestWriteBytes === 0;
  // Across the rows that it reads, a kernel would write single elements far apart.
  if (cuda.kind === 'pointwise') return placed.strides.at(-1) === 1;
  return rewritesOf(call).writesStrided?.(placed) === true;
}

/**
 * The layout in which to write `output`, dense in its storage, to get `to` directly: a copy of `from`, a view of that storage.
 * Null where `from` splits or reorders within a dimension of `output`.
 */
function layoutThrough(output: Layout, from: Layout, to: Layout): Layout | null {
  const strides = output.shape.map((length, i) => {
    if (length === 1) return 0;
    const stride = output.strides[i]!;
    const dimension = from.shape.findIndex(
      (own, d) => from.strides[d]! <= stride && stride * length <= from.strides[d]! * own,
    );
    if (dimension < 0 || stride % from.strides[dimension]! !== 0) return null;
    return to.strides[dimension]! * (stride / from.strides[dimension]!);
  });
  if (strides.includes(null) || from.offset !== 0) return null;
  return { shape: output.shape, strides: strides as number[], offset: to.offset };
}
