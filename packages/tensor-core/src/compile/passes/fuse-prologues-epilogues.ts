import type { FusionPlaces } from '../../op/kernel-rewrites.ts';
import type { Call, Operand, Graph } from '../graph/graph.ts';
import { type FusibleCall, fusibleCall } from './fusible-call.ts';
import { fusedKernelCall } from './fused-kernel-call.ts';
import { areIndependent, isSameOperand } from './operands.ts';
import { rewritesOf } from './rewrites-of.ts';

/**
 * Fuses element-wise calls into kernels that have a prologue and an epilogue, such as norms: the call that makes an input runs
 * as the kernel loads it, the one that reads an output as the kernel stores it. An embedding can be a prologue, too. Results
 * are the same bits, as what passes from one to the other is rounded to its dtype in memory.
 */
export function fuseProloguesAndEpilogues(graph: Graph): Graph {
  const fusion = new KernelFuser(graph);
  for (let i = 0; i < fusion.calls.length; i++) i = fusion.fuseAt(i);
  return { ...graph, calls: fusion.calls };
}

class KernelFuser {
  readonly calls: Call[];
  readonly #graph: Graph;

  constructor(graph: Graph) {
    this.#graph = graph;
    this.calls = [...graph.calls];
  }

  /** Fuses the call at `index` with its neighbours where possible; returns its index afterwards. */
  fuseAt(index: number): number {
    const call = this.calls[index]!;
    const places = fusionPlaces(call);
    if (!places) return index;
    const prologue = this.#prologue(call, places, index);
    const epilogue = this.#epilogue(call, places, index);
    const ways = [[prologue, epilogue], [prologue, null], [null, epilogue]] as const; // prettier-ignore
    for (const [first, last] of ways) {
      const fused = fusedKernelCall(call, places, first, last);
      if (!fused) continue;
      this.calls[index] = fused;
      for (const fusible of [first, last])
        if (fusible) this.calls.splice(this.calls.indexOf(fusible.call), 1);
      return this.calls.indexOf(fused);
    }
    return index;
  }

  /** The call that makes the input, if it can wait until this call runs. */
  #prologue(call: Call, { input }: FusionPlaces, index: number): FusibleCall | null {
    const shared = call.inputs[input]!;
    const at = this.calls.findLastIndex(({ outputs }, i) => i < index && isAmong(shared, outputs));
    const writer = this.calls[at];
    const fusible = writer && this.#isMade(shared) ? fusibleCall(writer, shared, 'prologue') : null;
    if (!fusible) return null;
    const between = this.calls.slice(at + 1, index);
    if (!between.every((other) => areIndependent(other, writer!))) return null;
    const isPassedOn = (_: Operand, place: number) => place === input;
    return { ...fusible, storesShared: this.#isNeeded(shared, index, call, isPassedOn) };
  }

  /** The first call that reads the output, if it can run as early as this call. */
  #epilogue(call: Call, { output }: FusionPlaces, index: number): FusibleCall | null {
    const shared = call.outputs[output]!;
    const at = this.calls.findIndex(({ inputs }, i) => i > index && isAmong(shared, inputs));
    const reader = this.calls[at];
    const fusible = reader && this.#isMade(shared) ? fusibleCall(reader, shared, 'epilogue') : null;
    if (!fusible) return null;
    const between = this.calls.slice(index + 1, at);
    if (!between.every((other) => areIndependent(other, reader!))) return null;
    const isPassedOn = (operand: Operand) => isSameOperand(operand, shared);
    return { ...fusible, storesShared: this.#isNeeded(shared, index, reader!, isPassedOn) };
  }

  #isMade({ storage }: Operand): boolean {
    return this.#graph.storages[storage]!.source.kind === 'made';
  }

  /**
   * Whether a shared operand must also be in memory: someone from the call at `index` on reads it there. `user` gets the inputs
   * that are `isPassedOn` in registers, but may read it from memory as another input, as a norm whose input is also its weight.
   */
  #isNeeded(
    { storage }: Operand,
    index: number,
    user: Call,
    isPassedOn: (input: Operand, place: number) => boolean,
  ): boolean {
    if (this.#graph.kept.has(storage)) return true;
    const isRead = (call: Call) =>
      call.inputs.some(
        (input, place) => input.storage === storage && !(call === user && isPassedOn(input, place)),
      );
    return this.calls.slice(index).some(isRead);
  }
}

/** Where a call's kernel takes a prologue and an epilogue; null where it takes none, or not for this call. */
function fusionPlaces(call: Call): FusionPlaces | null {
  const { inputs, outputs, live } = call;
  const { fusion } = rewritesOf(call);
  if (!fusion || live !== null) return null;
  const { input, output, longestRow } = fusion;
  const [from, to] = [inputs[input]!, outputs[output]!];
  const isFit = from.size > 0 && (from.shape.at(-1) ?? Infinity) <= longestRow && to.size === from.size;
  return isFit && [...inputs, ...outputs].every(({ isContiguous }) => isContiguous) ? fusion : null;
}

function isAmong(operand: Operand, operands: readonly Operand[]): boolean {
  return operands.some((other) => isSameOperand(other, operand));
}
