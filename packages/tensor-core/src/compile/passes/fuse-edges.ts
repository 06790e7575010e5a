import type { EdgePlaces } from '../../op/cuda-lowering.ts';
import type { Call, Operand, Program } from '../graph/program.ts';
import { type Edge, edgeOf } from './edge.ts';
import { edgedCall } from './edged-call.ts';
import { areIndependent, isSameOperand } from './operands.ts';

/**
 * A program in which kernels that take element-wise work along, as norms do, make an input themselves out of what an
 * element-wise call would make it of, and give on an output as the element-wise call behind it would. An embedding in front
 * is looked up as the input is loaded. Results are the same bits: what goes from one to the other is rounded as memory would
 * round it.
 */
export function fuseEdges(program: Program): Program {
  const fusion = new EdgeFusion(program);
  for (let i = 0; i < fusion.calls.length; i++) i = fusion.fuseAt(i);
  return { ...program, calls: fusion.calls };
}

class EdgeFusion {
  readonly calls: Call[];
  readonly #program: Program;

  constructor(program: Program) {
    this.#program = program;
    this.calls = [...program.calls];
  }

  /** Fuses the call at `index` with what stands around it, if it can be; gives where it stands then. */
  fuseAt(index: number): number {
    const call = this.calls[index]!;
    const places = edgePlaces(call);
    if (!places) return index;
    const before = this.#before(call, places, index);
    const after = this.#after(call, places, index);
    const ways = [[before, after], [before, null], [null, after]] as const; // prettier-ignore
    for (const [first, last] of ways) {
      const fused = edgedCall(call, places, first, last);
      if (!fused) continue;
      this.calls[index] = fused;
      for (const edge of [first, last]) if (edge) this.calls.splice(this.calls.indexOf(edge.call), 1);
      return this.calls.indexOf(fused);
    }
    return index;
  }

  /** The element-wise call that makes the input, where it can wait until this call runs. */
  #before(call: Call, { input }: EdgePlaces, index: number): Edge | null {
    const shared = call.inputs[input]!;
    const at = this.calls.findLastIndex(({ outputs }, i) => i < index && isAmong(shared, outputs));
    const writer = this.calls[at];
    const edge = writer && this.#isMade(shared) ? edgeOf(writer, shared, 'output') : null;
    if (!edge) return null;
    const between = this.calls.slice(at + 1, index);
    if (!between.every((other) => areIndependent(other, writer!))) return null;
    const isPassedOn = (_: Operand, place: number) => place === input;
    return { ...edge, storesShared: this.#isNeeded(shared, index, call, isPassedOn) };
  }

  /** The element-wise call that reads the output, where it can run as early as this call. */
  #after(call: Call, { output }: EdgePlaces, index: number): Edge | null {
    const shared = call.outputs[output]!;
    const at = this.calls.findIndex(({ inputs }, i) => i > index && isAmong(shared, inputs));
    const reader = this.calls[at];
    const edge = reader && this.#isMade(shared) ? edgeOf(reader, shared, 'input') : null;
    if (!edge) return null;
    const between = this.calls.slice(index + 1, at);
    if (!between.every((other) => areIndependent(other, reader!))) return null;
    const isPassedOn = (operand: Operand) => isSameOperand(operand, shared);
    return { ...edge, storesShared: this.#isNeeded(shared, index, reader!, isPassedOn) };
  }

  #isMade({ storage }: Operand): boolean {
    return this.#program.storages[storage]!.source.kind === 'made';
  }

  /**
   * Whether anybody reads from memory, from the call at `index` on, what goes from one call to the other: `user` does not in
   * those of its inputs that are passed on to it, but may in others, as a norm whose input is its own weight does.
   */
  #isNeeded(
    { storage }: Operand,
    index: number,
    user: Call,
    isPassedOn: (input: Operand, place: number) => boolean,
  ): boolean {
    if (this.#program.kept.has(storage)) return true;
    const isRead = (call: Call) =>
      call.inputs.some(
        (input, place) => input.storage === storage && !(call === user && isPassedOn(input, place)),
      );
    return this.calls.slice(index).some(isRead);
  }
}

/** Where a call's kernel takes edges; null where it takes none, or not for this call. */
function edgePlaces({ op: { cuda }, inputs, outputs, live }: Call): EdgePlaces | null {
  if (cuda.kind !== 'custom' || !cuda.edges || live !== null) return null;
  const { input, output, longestRow } = cuda.edges;
  const [from, to] = [inputs[input]!, outputs[output]!];
  const isFit = from.size > 0 && (from.shape.at(-1) ?? Infinity) <= longestRow && to.size === from.size;
  return isFit && [...inputs, ...outputs].every(({ isContiguous }) => isContiguous) ? cuda.edges : null;
}

function isAmong(operand: Operand, operands: readonly Operand[]): boolean {
  return operands.some((other) => isSameOperand(other, operand));
}
