import { isIntermediate } from '../graph/liveness.ts';
import { copyOp } from '../../ops/copy/contiguous.ts';
import type { Call, Operand, Graph } from '../graph/graph.ts';
import { type Layout, isContiguous } from '../../base/shape.ts';
import { isOp } from './is-op.ts';
import { areDisjoint, areIndependent, usesOf } from './operands.ts';
import { rewritesOf } from './rewrites-of.ts';

/** Drops copies that only change the layout of a call's result, where the call can write that layout itself; it then runs last. */
export function foldCopies(graph: Graph): Graph {
  const calls = [...graph.calls];
  let uses = usesOf(calls);
  for (let at = 0; at < calls.length; at++) {
    const copy = calls[at]!;
    const writer = isCopy(copy) ? onlyWriter(graph, uses, copy) : null;
    if (!writer) continue;
    const from = calls.indexOf(writer);
    const folded = writingAs(writer, copy);
    if (!folded || !calls.slice(from + 1, at).every((between) => areIndependent(between, writer))) continue;
    calls[at] = folded;
    calls.splice(from, 1);
    uses = usesOf(calls);
    at--;
  }
  return { ...graph, calls };
}

function isCopy({ op, live }: Call): boolean {
  return isOp(op, copyOp) && live === null;
}

/** The call that makes what `copy` reads, if nothing else uses that. */
function onlyWriter(graph: Graph, uses: Map<number, Call[]>, copy: Call): Call | null {
  const { storage } = copy.inputs[0]!;
  const [writer, reader, ...others] = uses.get(storage)!;
  if (reader !== copy || others.length > 0 || !isIntermediate(graph, storage)) return null;
  return writer!.inputs.some((input) => input.storage === storage) ? null : writer!;
}

/** `writer` with the copy's output in place of what was copied; null where it cannot write that. */
function writingAs(writer: Call, copy: Call): Call | null {
  const [from, to] = [copy.inputs[0]!, copy.outputs[0]!];
  const written = writer.outputs.filter(({ storage }) => storage === from.storage);
  const [output] = written;
  if (written.length !== 1 || !output!.isContiguous || output!.size !== from.size) return null;
  const layout = layoutThrough(output!, from, to);
  if (!layout || !canWrite(writer, layout)) return null;
  const placed: Operand = {
    ...output!,
    ...layout,
    storage: to.storage,
    isContiguous: isContiguous(layout.shape, layout.strides),
  };
  // What it reads may be in the copy's storage, if that is a joint one, but must not overlap it.
  if (!writer.inputs.every((input) => areDisjoint(input, placed))) return null;
  return { ...writer, outputs: writer.outputs.map((other) => (other === output ? placed : other)) };
}

function canWrite(call: Call, layout: Layout): boolean {
  const { cuda, mutates } = call.op;
  if (mutates) return false;
  // Across the rows that it reads, a kernel would write single elements far apart.
  if (cuda.kind === 'pointwise') return layout.strides.at(-1) === 1;
  return rewritesOf(call).writesStrided?.(layout) === true;
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
