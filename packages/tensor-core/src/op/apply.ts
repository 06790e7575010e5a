import { autocastOperands } from '../autocast/autocast.ts';
import { castOp } from '../autocast/cast-op.ts';
import { isGradEnabled } from '../autograd/grad-mode.ts';
import { TapeNode } from '../autograd/tape.ts';
import type { DType } from '../tensor/dtype.ts';
import { DeviceError } from '../errors.ts';
import type { ComputeOp, ViewOp } from './op.ts';
import { currentRange } from './range.ts';
import { Tensor } from '../tensor/tensor.ts';

/** Sees every op call before it runs: profilers and recorders hook in here and nowhere else. */
export interface OpObserver {
  before(
    op: ComputeOp<never>,
    inputs: readonly Tensor[],
    outputs: readonly Tensor[],
    attributes: unknown,
  ): void;
  after(op: ComputeOp<never>): void;
}

let observer: OpObserver | null = null;

/** Sets the one observer, or none; returns the one before. */
export function observeOps(next: OpObserver | null): OpObserver | null {
  const before = observer;
  observer = next;
  return before;
}

/**
 * Runs an op: casts its inputs if autocast says so, infers its outputs, lowers it on its inputs' device, and
 * records it on the tape if an input requires a gradient. This is the only way that an op runs.
 */
export function apply<A>(op: ComputeOp<A>, inputs: readonly Tensor[], attributes: A): Tensor[] {
  const operands = autocastOperands(op.autocast, inputs, convert);
  const outputs = run(op, operands, attributes);
  if (op.gradient) record(op, inputs, operands, outputs, attributes);
  if (operands !== inputs) disposeCasts(inputs, operands);
  return outputs;
}

function run<A>(op: ComputeOp<A>, inputs: readonly Tensor[], attributes: A): Tensor[] {
  const device = commonDevice(op.name, inputs);
  const specs = op.infer(inputs, attributes);
  const outputs = new Array<Tensor>(specs.length);
  for (let i = 0; i < specs.length; i++) {
    const mutated = op.mutates?.[i];
    outputs[i] =
      mutated === undefined
        ? Tensor.allocate(device, specs[i]!.dtype, specs[i]!.shape)
        : aliasForWriting(inputs[mutated]!);
  }
  observer?.before(op as ComputeOp<never>, inputs, outputs, attributes);
  device.run(op, inputs, outputs, attributes);
  observer?.after(op as ComputeOp<never>);
  return outputs;
}

function convert(x: Tensor, dtype: DType): Tensor {
  return run(castOp, [x], { dtype })[0]!;
}

// What the backward pass needs of the casts, the tape has saved.
function disposeCasts(inputs: readonly Tensor[], operands: readonly Tensor[]): void {
  for (let i = 0; i < operands.length; i++) if (operands[i] !== inputs[i]) operands[i]!.dispose();
}

/** Runs an op of one output. */
export function applyOne<A>(op: ComputeOp<A>, inputs: readonly Tensor[], attributes: A): Tensor {
  return apply(op, inputs, attributes)[0]!;
}

/** Makes a view: the same storage, another layout. */
export function applyView<A>(op: ViewOp<A>, input: Tensor, attributes: A): Tensor {
  input.assertAlive(op.name);
  const { shape, strides, offset } = op.layout(input, attributes);
  const output = new Tensor(input.storage.retain(), input.dtype, shape, strides, offset);
  record(op, [input], [input], [output], attributes);
  return output;
}

function record<A>(
  op: ComputeOp<A> | ViewOp<A>,
  inputs: readonly Tensor[],
  operands: readonly Tensor[],
  outputs: readonly Tensor[],
  attributes: A,
): void {
  if (!isGradEnabled() || !inputs.some((input) => input.requiresGrad)) return;
  TapeNode.record(
    op,
    attributes,
    inputs,
    operands,
    outputs,
    inputs.map((input) => input.requiresGrad),
    currentRange(),
  );
}

function aliasForWriting(input: Tensor): Tensor {
  input.storage.version++;
  return new Tensor(input.storage.retain(), input.dtype, input.shape, input.strides, input.offset);
}

function commonDevice(op: string, inputs: readonly Tensor[]) {
  const first = inputs[0];
  if (!first) throw new DeviceError(`${op}: an op needs at least one input to know its device.`);
  for (const input of inputs) {
    input.assertAlive(op);
    if (input.device !== first.device) {
      throw new DeviceError(
        `${op}: inputs are on ${first.device.label} and ${input.device.label}; move one with .to(device).`,
      );
    }
  }
  return first.device;
}
