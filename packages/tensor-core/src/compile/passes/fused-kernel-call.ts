import type { CustomKernel } from '../../op/cuda-lowering.ts';
import type { FusionPlaces } from '../../op/kernel-rewrites.ts';
import type { MemoryView } from '../../base/memory-view.ts';
import type { Call, Operand } from '../graph/graph.ts';
import {
  type FusedArguments,
  FusionSpecs,
  fusionArgument,
} from '../../backends/cuda/generated/kernel-fusion.ts';
import { type FusibleCall, inMemory, scalarsOf, signatureOf } from './fusible-call.ts';
import { fusedCall } from './fused-ops.ts';
import { areDisjoint, isSameOperand } from './operands.ts';

/** What a prologue, the kernel itself and an epilogue read and write. */
interface Parts {
  readonly prologue: ReturnType<typeof inMemory>;
  readonly own: { readonly inputs: readonly Operand[]; readonly outputs: readonly Operand[] };
  readonly epilogue: ReturnType<typeof inMemory>;
}

const nothing = { inputs: [], outputs: [] };

/** One call of all three; null without prologue and epilogue, or where one part writes what another reads elsewhere. */
export function fusedKernelCall(
  call: Call,
  places: FusionPlaces,
  prologue: FusibleCall | null,
  epilogue: FusibleCall | null,
): Call | null {
  // One call cannot be both; nor is it needed where there is neither.
  if (prologue?.call === epilogue?.call) return null;
  const parts = {
    prologue: prologue ? inMemory(prologue) : nothing,
    own: {
      inputs: prologue ? call.inputs.filter((_, i) => i !== places.input) : call.inputs,
      outputs:
        epilogue && !epilogue.storesShared
          ? call.outputs.filter((_, i) => i !== places.output)
          : call.outputs,
    },
    epilogue: epilogue ? inMemory(epilogue) : nothing,
  };
  if (!keepApart(parts) || (prologue && writesTable(prologue, parts))) return null;
  const members = [...(prologue ? [prologue.call] : []), call, ...(epilogue ? [epilogue.call] : [])];
  const inputs = [...parts.prologue.inputs, ...parts.own.inputs, ...parts.epilogue.inputs];
  const outputs = [...parts.prologue.outputs, ...parts.own.outputs, ...parts.epilogue.outputs];
  const cuda = fusedKernel(call, places, prologue, epilogue, parts);
  return { ...fusedCall(members, inputs, outputs, { cuda }), range: call.range };
}

/**
 * Whether all parts read what they would read in separate calls. Prologue and epilogue read and write the same element in the
 * order in which the calls would; nothing else may overlap what they write.
 */
function keepApart({ prologue, own, epilogue }: Parts): boolean {
  const fusedInputs = [...prologue.inputs, ...epilogue.inputs];
  const fusedOutputs = [...prologue.outputs, ...epilogue.outputs];
  const meets = (a: Operand) => (b: Operand) => !areDisjoint(a, b);
  const isOrdered = (a: Operand) => (b: Operand) => areDisjoint(a, b) || isSameOperand(a, b);
  return (
    fusedOutputs.every((output) => [...fusedInputs, ...fusedOutputs].every(isOrdered(output))) &&
    !fusedOutputs.some((output) => [...own.inputs, ...own.outputs].some(meets(output))) &&
    !own.outputs.some((output) => fusedInputs.some(meets(output)))
  );
}

/** Whether the epilogue writes to the table in which the prologue looks rows up: other elements than its own. */
function writesTable({ call, ids }: FusibleCall, { epilogue }: Parts): boolean {
  return ids !== undefined && epilogue.outputs.some((output) => !areDisjoint(output, call.inputs[0]!));
}

function fusedKernel(
  call: Call,
  places: FusionPlaces,
  prologue: FusibleCall | null,
  epilogue: FusibleCall | null,
  parts: Parts,
): CustomKernel<undefined> {
  const kernel = call.op.cuda as CustomKernel<unknown>;
  const signatures = {
    prologue: prologue && signatureOf(prologue),
    epilogue: epilogue && signatureOf(epilogue),
  };
  const specs = new FusionSpecs(signatures);
  return {
    kind: 'custom',
    // All are contiguous.
    strided: true,
    launch(context, inputs, outputs) {
      const given = partsOf(inputs, parts, 'inputs');
      const made = partsOf(outputs, parts, 'outputs');
      const argument = fusionArgument(signatures, [
        argumentsOf(prologue, given.prologue, made.prologue),
        argumentsOf(epilogue, given.epilogue, made.epilogue),
      ]);
      const ownInputs = prologue
        ? given.own.toSpliced(places.input, 0, nowhere(prologue.shared, inputs[0]!))
        : given.own;
      const ownOutputs =
        epilogue && !epilogue.storesShared
          ? made.own.toSpliced(places.output, 0, nowhere(epilogue.shared, inputs[0]!))
          : made.own;
      kernel.launch(context, ownInputs, ownOutputs, call.attributes, { fusion: specs.with(argument) });
    },
  };
}

/** The operands of each part, from those of all parts in their order. */
function partsOf(all: readonly MemoryView[], { prologue, own }: Parts, role: 'inputs' | 'outputs') {
  const [first, second] = [prologue[role].length, prologue[role].length + own[role].length];
  return { prologue: all.slice(0, first), own: all.slice(first, second), epilogue: all.slice(second) };
}

function argumentsOf(
  fusible: FusibleCall | null,
  inputs: readonly MemoryView[],
  outputs: readonly MemoryView[],
): FusedArguments {
  const addresses = [...inputs, ...outputs].map(({ address }) => address);
  return { addresses, scalars: fusible ? scalarsOf(fusible) : [] };
}

/** A tensor with shape and dtype, but at the address 0. */
function nowhere({ shape, strides, dtype, size, byteLength }: Operand, { storage }: MemoryView): MemoryView {
  return { shape, strides, dtype, size, byteLength, isContiguous: true, address: 0, offset: 0, storage };
}
