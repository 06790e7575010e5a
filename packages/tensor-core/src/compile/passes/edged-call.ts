import type { CustomKernel, EdgePlaces } from '../../op/cuda-lowering.ts';
import type { MemoryView } from '../../base/memory-view.ts';
import type { Call, Operand } from '../graph/program.ts';
import { type EdgeArguments, EdgeSpecs, edgesArgument } from '../../backends/cuda/generated/edges.ts';
import { type Edge, inMemory, scalarsOf, signatureOf } from './edge.ts';
import { fusedCall } from './fused-ops.ts';
import { areDisjoint, isSameOperand } from './operands.ts';

/** What edges, and the call between them, read and write. */
interface Parts {
  readonly before: ReturnType<typeof inMemory>;
  readonly own: { readonly inputs: readonly Operand[]; readonly outputs: readonly Operand[] };
  readonly after: ReturnType<typeof inMemory>;
}

const nothing = { inputs: [], outputs: [] };

/** `call` with its edges as one call; null where there are none, or one writes what another part reads elsewhere. */
export function edgedCall(
  call: Call,
  places: EdgePlaces,
  before: Edge | null,
  after: Edge | null,
): Call | null {
  // One call cannot stand on both sides; nor is it needed where there is none on either.
  if (before?.call === after?.call) return null;
  const parts = {
    before: before ? inMemory(before) : nothing,
    own: {
      inputs: before ? call.inputs.filter((_, i) => i !== places.input) : call.inputs,
      outputs:
        after && !after.storesShared ? call.outputs.filter((_, i) => i !== places.output) : call.outputs,
    },
    after: after ? inMemory(after) : nothing,
  };
  if (!keepApart(parts) || (before && writesTable(before, parts))) return null;
  const members = [...(before ? [before.call] : []), call, ...(after ? [after.call] : [])];
  const inputs = [...parts.before.inputs, ...parts.own.inputs, ...parts.after.inputs];
  const outputs = [...parts.before.outputs, ...parts.own.outputs, ...parts.after.outputs];
  const cuda = edgedKernel(call, places, before, after, parts);
  return { ...fusedCall(members, inputs, outputs, { cuda }), range: call.range };
}

/**
 * Whether all sees what it would see in separate calls. Edges read and write an element of their own in the order in which
 * the calls would; anything else must not meet what they write.
 */
function keepApart({ before, own, after }: Parts): boolean {
  const edgeInputs = [...before.inputs, ...after.inputs];
  const edgeOutputs = [...before.outputs, ...after.outputs];
  const meets = (a: Operand) => (b: Operand) => !areDisjoint(a, b);
  const isOrdered = (a: Operand) => (b: Operand) => areDisjoint(a, b) || isSameOperand(a, b);
  return (
    edgeOutputs.every((output) => [...edgeInputs, ...edgeOutputs].every(isOrdered(output))) &&
    !edgeOutputs.some((output) => [...own.inputs, ...own.outputs].some(meets(output))) &&
    !own.outputs.some((output) => edgeInputs.some(meets(output)))
  );
}

/** Whether an edge writes to the table that another one looks rows up in: other elements than its own. */
function writesTable({ call, ids }: Edge, { after }: Parts): boolean {
  return ids !== undefined && after.outputs.some((output) => !areDisjoint(output, call.inputs[0]!));
}

function edgedKernel(
  call: Call,
  places: EdgePlaces,
  before: Edge | null,
  after: Edge | null,
  parts: Parts,
): CustomKernel<undefined> {
  const kernel = call.op.cuda as CustomKernel<unknown>;
  const signatures = { before: before && signatureOf(before), after: after && signatureOf(after) };
  const specs = new EdgeSpecs(signatures);
  return {
    kind: 'custom',
    // All are contiguous.
    strided: true,
    launch(context, inputs, outputs) {
      const given = partsOf(inputs, parts, 'inputs');
      const made = partsOf(outputs, parts, 'outputs');
      const argument = edgesArgument(signatures, [
        argumentsOf(before, given.before, made.before),
        argumentsOf(after, given.after, made.after),
      ]);
      const ownInputs = before
        ? given.own.toSpliced(places.input, 0, nowhere(before.shared, inputs[0]!))
        : given.own;
      const ownOutputs =
        after && !after.storesShared
          ? made.own.toSpliced(places.output, 0, nowhere(after.shared, inputs[0]!))
          : made.own;
      kernel.launch(context, ownInputs, ownOutputs, call.attributes, specs.with(argument));
    },
  };
}

/** The operands of each part, of those of all in their order. */
function partsOf(all: readonly MemoryView[], { before, own }: Parts, role: 'inputs' | 'outputs') {
  const [first, second] = [before[role].length, before[role].length + own[role].length];
  return { before: all.slice(0, first), own: all.slice(first, second), after: all.slice(second) };
}

function argumentsOf(
  edge: Edge | null,
  inputs: readonly MemoryView[],
  outputs: readonly MemoryView[],
): EdgeArguments {
  const addresses = [...inputs, ...outputs].map(({ address }) => address);
  return { addresses, scalars: edge ? scalarsOf(edge) : [] };
}

/** A tensor that has its shape and dtype, but lies nowhere. */
function nowhere({ shape, strides, dtype, size, byteLength }: Operand, { storage }: MemoryView): MemoryView {
  return { shape, strides, dtype, size, byteLength, isContiguous: true, address: 0, offset: 0, storage };
}
