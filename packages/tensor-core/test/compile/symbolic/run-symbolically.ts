import { withoutCopies } from '../../../src/compile/passes/copying-op.ts';
import { isFused } from '../../../src/compile/passes/fused-ops.ts';
import { placesRead } from '../../../src/compile/passes/pointwise-call.ts';
import { rewritesOf } from '../../../src/compile/passes/rewrites-of.ts';
import type { Call, Operand, Graph } from '../../../src/compile/graph/graph.ts';
import { checkKernel } from './check-kernels.ts';
import { SymbolicMemory, isSamePlace } from './symbolic-memory.ts';
import { type PartialOps, partialOps, symbolsOf } from './symbolic-ops.ts';
import type { Symbol } from './symbols.ts';

type Values = readonly Symbol[];

/**
 * What a graph leaves in captured storages and those that outlive it, by their numbers, where each call reads everything
 * before it writes. Throws an Error for a call for which that does not hold on a GPU: one that writes what its other threads
 * may still read, or does work whose operands it lacks. Storages may take over the memory of others.
 */
export function runSymbolically(
  graph: Graph,
  traced: Graph,
  garbage: string,
  takenOver: ReadonlyMap<number, number> = new Map(),
): Map<number, Int32Array> {
  const memory = new SymbolicMemory(graph, garbage, takenOver);
  const parts = partialOps(traced.calls);
  for (const { source } of graph.storages)
    if (source.kind === 'copy') for (const cast of source.casts) runCall(cast, memory, parts);
  for (const call of graph.calls) runCall(call, memory, parts);
  const seen = traced.storages.flatMap(({ source }, number) =>
    source.kind !== 'made' || traced.kept.has(number) ? [number] : [],
  );
  return new Map(seen.map((number) => [number, memory.elements(number)]));
}

function runCall(given: Call, memory: SymbolicMemory, parts: PartialOps): void {
  const { call, copies } = withoutCopies(given);
  checkKernel(call);
  const read = call.inputs.map((input) => memory.read(input));
  const made = isFused(call.op) ? runMembers(call, memory, parts) : symbolsOf(call, read, parts);
  call.outputs.forEach((output, i) => memory.write(output, made[i]!));
  copies.forEach((copy, i) => copy && memory.write(copy, made[i]!));
}

interface Made {
  readonly operand: Operand;
  readonly values: Values;
}

/** A fused call's members in order; what one makes goes to the next if the layout is the same, otherwise memory is read. */
function runMembers(fused: Call, memory: SymbolicMemory, parts: PartialOps): Values[] {
  const made: Made[] = [];
  for (const member of fused.members!) {
    const inputs = member.inputs.map((input, place) => {
      const passed = made.findLast(({ operand }) => isSamePlace(operand, input));
      if (passed && isPassedOn(fused, member, place)) return passed.values;
      const isGiven = fused.inputs.some((other) => isSamePlace(other, input));
      if (!isGiven && isRead(member, place))
        throw new Error(`${fused.op.name} is not given an input of ${member.op.name}.`);
      return memory.read(input);
    });
    const values = symbolsOf(member, inputs, parts);
    member.outputs.forEach((operand, i) => made.push({ operand, values: values[i]! }));
  }
  return fused.outputs.map((output) => {
    const last = made.findLast(({ operand }) => isSamePlace(operand, output));
    if (!last) throw new Error(`${fused.op.name} writes what none of its members makes.`);
    return last.values;
  });
}

/** Whether members pass this input on: to a kernel with prologue and epilogue only its one input, to those two everything. */
function isPassedOn(fused: Call, member: Call, place: number): boolean {
  const { fusion } = rewritesOf(member);
  return !fusion || fused.op.cuda.kind !== 'custom' || place === fusion.input;
}

function isRead(call: Call, place: number): boolean {
  return call.op.cuda.kind !== 'pointwise' || placesRead(call).includes(place);
}
