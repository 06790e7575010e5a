import { DeviceError, wrongArgument } from '@roofline/cuda/host';
import { requireTensor, requireTensors } from './require-tensor.ts';
import { autocastOperands, disposeCasts } from './autocast/autocast.ts';
import { castOp } from './autocast/cast-op.ts';
import { isGradEnabled } from '../tensor/tape/grad-mode.ts';
import { TapeNode } from '../tensor/tape/tape.ts';
import type { Device } from '../tensor/device.ts';
import type { DType } from '../base/dtype.ts';
import { extentOf } from '../tensor/storage/extent.ts';
import { isFloatingPoint } from '../base/dtype.ts';
import { Tensor } from '../tensor/tensor.ts';
import { tracing } from '../tensor/tracing.ts';
import { checkInPlace } from './in-place-rules.ts';
import { outputIn } from './destination.ts';
import { areResultsFollowed, keptOrMade } from './kept-results.ts';
import { type Observer, observers, tellAfter, tellBefore } from './observers.ts';
import type { ComputeOp, ViewOp } from './op.ts';

/** Where to write outputs, by their indices; null or absent for new memory. */
export type Destinations = readonly (Tensor | null)[];

const anywhere: Destinations = [];

/**
 * Runs an op: casts its inputs if autocast says so, infers its outputs, lowers it on its inputs' device, and
 * records it on the tape if an input requires a gradient. This is the only way that an op runs.
 *
 * Inside noGrad, as in gradient rules, an output is written to its destination and shares its storage. That is a hint: the
 * output gets memory of its own if shape, dtype or device differ, if the destination is not contiguous or not aligned to 16
 * bytes, if an input is in its storage, or if a collective works on it.
 */
export function apply<A>(
  op: ComputeOp<A>,
  inputs: readonly Tensor[],
  attributes: A,
  destinations: Destinations = anywhere,
): Tensor[] {
  requireComputeOp('apply', op);
  requireTensors(op.name, inputs);
  if (destinations !== anywhere) checkDestinations(op.name, destinations);
  if (op.mutates) checkInPlace(op as ComputeOp<never>, inputs);
  const operands = autocastOperands(op.autocast, inputs, convert);
  try {
    const make = () => run(op, operands, attributes, destinations);
    const outputs = areResultsFollowed() ? keptOrMade(op as ComputeOp<never>, make) : make();
    if (op.gradient && isGradEnabled() && anyRequiresGrad(inputs)) {
      record(op as ComputeOp<never>, inputs, operands, outputs, attributes);
    }
    return outputs;
  } finally {
    if (operands !== inputs) disposeCasts(inputs, operands);
  }
}

/** Throws a RooflineError (code ARGUMENT), which names `owner`, unless `op` computes. */
export function requireComputeOp<A>(owner: string, op: ComputeOp<A>): void {
  if (op?.kind !== 'compute') throw wrongArgument(owner, 'the op', 'one that defineOp() gave', op);
}

function checkDestinations(op: string, destinations: Destinations): void {
  if (!Array.isArray(destinations)) throw wrongArgument(op, 'the destinations', 'a list', destinations);
  for (const destination of destinations) if (destination !== null) requireTensor(op, destination);
}

function run<A>(
  op: ComputeOp<A>,
  inputs: readonly Tensor[],
  attributes: A,
  destinations: Destinations,
): Tensor[] {
  const device = commonDevice(op.name, inputs);
  const specs = op.infer(inputs, attributes);
  const outputs = new Array<Tensor>(specs.length);
  let made = 0;
  try {
    for (; made < specs.length; made++) {
      const spec = specs[made]!;
      const mutated = op.mutates?.[made];
      const destination = destinations[made] ?? null;
      outputs[made] =
        mutated !== undefined
          ? aliasForWriting(inputs[mutated]!)
          : ((destination && outputIn(destination, spec, device, inputs)) ??
            Tensor.allocate(device, spec.dtype, spec.shape));
    }
    runOnDevice(device, op, inputs, outputs, attributes);
    return outputs;
  } catch (error) {
    // Nobody else has a handle to them.
    for (let i = 0; i < made; i++) outputs[i]!.dispose();
    throw error;
  }
}

/** Runs an op with allocated outputs, and reports it to observers. */
export function runOnDevice<A>(
  device: Device,
  op: ComputeOp<A>,
  inputs: readonly Tensor[],
  outputs: readonly Tensor[],
  attributes: A,
): void {
  if (observers.length === 0) device.run(op, inputs, outputs, attributes);
  else runObserved(device, op, inputs, outputs, attributes);
}

function runObserved<A>(
  device: Device,
  op: ComputeOp<A>,
  inputs: readonly Tensor[],
  outputs: readonly Tensor[],
  attributes: A,
): void {
  const observed = op as ComputeOp<never>;
  const told: Observer[] = [];
  let failed = true;
  try {
    tellBefore(told, observed, inputs, outputs, attributes);
    device.run(op, inputs, outputs, attributes);
    failed = false;
  } finally {
    tellAfter(told, observed, failed);
  }
}

function convert(x: Tensor, dtype: DType): Tensor {
  return run(castOp, [x], { dtype }, anywhere)[0]!;
}

/** Runs an op with one output, which is written to `destination` as `apply` does. */
export function applyOne<A>(
  op: ComputeOp<A>,
  inputs: readonly Tensor[],
  attributes: A,
  destination: Tensor | null = null,
): Tensor {
  return apply(op, inputs, attributes, destination === null ? anywhere : [destination])[0]!;
}

/** Makes a view: the same storage, another layout. */
export function applyView<A>(op: ViewOp<A>, input: Tensor, attributes: A): Tensor {
  if (op?.kind !== 'view') throw wrongArgument('applyView', 'the op', 'one that defineView() gave', op);
  requireTensor(op.name, input);
  input.assertAlive(op.name);
  const { shape, strides, offset } = op.layout(input, attributes);
  const output = new Tensor(input.storage.retain(), input.dtype, shape, strides, offset);
  if (op.gradient && isGradEnabled() && input.requiresGrad) {
    try {
      TapeNode.record(op, attributes, [input], [input], [output]);
    } catch (error) {
      output.dispose();
      throw error;
    }
  }
  return output;
}

/** Records an op, unless no output is floating-point and so has a gradient. What is written in place gets the new history. */
function record(
  op: ComputeOp<never>,
  inputs: readonly Tensor[],
  operands: readonly Tensor[],
  outputs: readonly Tensor[],
  attributes: unknown,
): void {
  if (!outputs.some((output) => isFloatingPoint(output.dtype))) return;
  let node: TapeNode;
  try {
    node = TapeNode.record(op, attributes, inputs, operands, outputs);
  } catch (error) {
    // Nobody else has a handle to them.
    for (const output of outputs) output.dispose();
    throw error;
  }
  op.mutates?.forEach((input, output) => {
    inputs[input]!.setHistory(node, output);
    tracing.active?.historyWritten(inputs[input]!);
  });
}

function anyRequiresGrad(inputs: readonly Tensor[]): boolean {
  for (let i = 0; i < inputs.length; i++) if (inputs[i]!.requiresGrad) return true;
  return false;
}

function aliasForWriting(input: Tensor): Tensor {
  input.storage.noteWrite(extentOf(input));
  return new Tensor(input.storage.retain(), input.dtype, input.shape, input.strides, input.offset);
}

function commonDevice(op: string, inputs: readonly Tensor[]): Device {
  const first = inputs[0];
  if (!first) throw new DeviceError(`${op}: an op needs at least one input to know its device.`);
  const { device } = first;
  for (let i = 0; i < inputs.length; i++) {
    const input = inputs[i]!;
    input.assertAlive(op);
    if (input.device !== device) {
      throw new DeviceError(
        `${op}: inputs are on ${device.label} and ${input.device.label}; move one with .to(device).`,
      );
    }
  }
  return device;
}
