import { isIntermediate } from '../graph/liveness.ts';
import { copyOp } from '../../ops/copy/contiguous.ts';
import type { Call, Operand, Graph } from '../graph/graph.ts';
import { type Layout, isContiguous } from '../../base/shape.ts';
import { isOp } from './is-op.ts';
import { areDisjoint, areIndependent, usesOf } from './operands.ts';

/**
 * A program without copies that only change how a call's result lies in memory, where that call can write it so itself. The
 * call then runs in the copy's place.
 */
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

function isCopy({ op, inputs, outputs, live }: Call): boolean {
  return isOp(op, copyOp) && live === null && inputs[0]!.dtype === outputs[0]!.dtype;
}

/** The call that makes all of what `copy` reads, if nobody else uses it. */
function onlyWriter(graph: Graph, uses: Map<number, Call[]>, copy: Call): Call | null {
  const { storage } = copy.inputs[0]!;
  const [writer, reader, ...others] = uses.get(storage)!;
  if (reader !== copy || others.length > 0 || !isIntermediate(graph, storage)) return null;
  return writer!.inputs.some((input) => input.storage === storage) ? null : writer!;
}

/** `writer` with the copy's output in the place of what was copied; null where it cannot write that. */
function writingAs(writer: Call, copy: Call): Call | null {
  const [from, to] = [copy.inputs[0]!, copy.outputs[0]!];
  const written = writer.outputs.filter(({ storage }) => storage === from.storage);
  const [output] = written;
  if (written.length !== 1 || output!.dtype !== to.dtype || !output!.isContiguous) return null;
  if (output!.size !== from.size || output!.offset !== 0) return null;
  const layout = layoutThrough(output!, from, to);
  if (!layout || !canWrite(writer, layout)) return null;
  const placed: Operand = {
    ...output!,
    ...layout,
    storage: to.storage,
    isContiguous: isContiguous(layout.shape, layout.strides),
  };
  // What it reads may lie beside the copy, in a joint storage, but not in its way.
  if (!writer.inputs.every((input) => areDisjoint(input, placed))) return null;
  return { ...writer, outputs: writer.outputs.map((other) => (other === output ? placed : other)) };
}

function canWrite({ op: { cuda, mutates } }: Call, layout: Layout): boolean {
  if (mutates) return false;
  // Along other rows than it reads, a kernel would write each element apart.
  if (cuda.kind === 'pointwise') return layout.strides.at(-1) === 1;
  return cuda.kind === 'custom' && cuda.writesStrided?.(layout) === true;
}

/**
 * Where the elements of `output`, dense in its storage, must be written so that they lie as in `to`, of which `from`, a
 * view of that storage, was a copy. Null where `from` does not keep the dimensions of `output` whole.
 */
function layoutThrough(output: Layout, from: Layout, to: Layout): Layout | null {
  const strides = output.shape.map((length, i) => {
    if (length === 1) return 0;
    const stride = output.strides[i]!;
    const dimension = from.shape.findIndex(
      (own, d) => own > 1 && from.strides[d]! <= stride && stride * length <= from.strides[d]! * own,
    );
    if (dimension < 0 || stride % from.strides[dimension]! !== 0) return null;
    return to.strides[dimension]! * (stride / from.strides[dimension]!);
  });
  if (strides.includes(null) || from.offset !== 0) return null;
  return { shape: output.shape, strides: strides as number[], offset: to.offset };
}
