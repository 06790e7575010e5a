import type { UpdateByTensor } from '../../op/kernel-rewrites.ts';
import type { Call, Operand } from '../graph/graph.ts';
import { byteSize } from '../../base/dtype.ts';
import { withCopies, withoutCopies } from './copying-op.ts';
import { gpuOp } from './gpu-op.ts';
import type { Rewrite } from './rewrite.ts';
import { rewritesOf } from './rewrites-of.ts';

/** The part of an update that belongs to one tensor. */
export interface TensorUpdate {
  /** By role. */
  readonly inputs: readonly Operand[];
  /** The roles that are written. */
  readonly outputs: readonly Operand[];
  /** The low-precision copy that is written with it; null for none. */
  readonly copy: Operand | null;
}

/** An update of several tensors, without the copies that it writes. */
export interface Update {
  readonly call: Call;
  readonly byTensor: UpdateByTensor<never>;
  readonly shared: readonly Operand[];
  readonly tensors: readonly TensorUpdate[];
}

/** The numbers that partial updates read. */
export interface UpdateNumbers {
  readonly coefficients: Operand;
  /** The factor by which gradients are multiplied first; null for none. */
  readonly factor: Operand | null;
}

/** What runs a partial update. */
export interface UpdateKernel extends Pick<UpdateByTensor<never>, 'launch'> {
  readonly name: string;
  readonly cost: Call['op']['cost'];
  /** Whether it reads inputs in any layout. Default false. */
  readonly strided?: boolean;
}

/** A call as an update of several tensors; null if it is none. */
export function updateOf(call: Call): Update | null {
  const { call: plain, copies } = withoutCopies(call);
  const { byTensor } = rewritesOf(plain);
  if (!byTensor) return null;
  const { written, roles } = byTensor;
  const count = plain.outputs.length / written;
  const ofTensor = (operands: readonly Operand[], lists: number, tensor: number) =>
    Array.from({ length: lists }, (_, role) => operands[role * count + tensor]!);
  const tensors = Array.from({ length: count }, (_, tensor) => ({
    inputs: ofTensor(plain.inputs, roles, tensor),
    outputs: ofTensor(plain.outputs, written, tensor),
    copy: copies[tensor] ?? null,
  }));
  return { call: plain, byTensor, shared: plain.inputs.slice(roles * count), tensors };
}

/** The roles that are read only, such as gradients. */
export function updatedBy({ byTensor }: Update, { inputs }: TensorUpdate): readonly Operand[] {
  return inputs.slice(byTensor.written);
}

/** Adds a call, before all others, that writes the coefficients of an update. */
export function hoistCoefficients(rewrite: Rewrite, { call, byTensor }: Update): Operand {
  const output = addNumbers(rewrite, byTensor.coefficientCount);
  const op = gpuOp(`${call.op.name}_coefficients`, (context, _, [memory], attributes) =>
    byTensor.coefficients(context, memory!, attributes),
  );
  rewrite.hoist({ ...call, op, inputs: [], outputs: [output] }, rewrite.graph.calls[0]!);
  return output;
}

/** Adds a storage of `size` float32 numbers. */
export function addNumbers(rewrite: Rewrite, size: number): Operand {
  const byteLength = size * byteSize('float32');
  const storage = rewrite.add({ byteLength, dtype: 'float32', source: { kind: 'made' } }, () => new Map());
  const layout = { shape: [size], strides: [1], offset: 0, isContiguous: true };
  return { storage, dtype: 'float32', size, byteLength, ...layout };
}

/** An update of some of the tensors, by `kernel` if it is not the update's own. */
export function partialUpdate(
  { call, byTensor, shared }: Update,
  tensors: readonly TensorUpdate[],
  { coefficients, factor }: UpdateNumbers,
  kernel: UpdateKernel = { name: call.op.name, launch: byTensor.launch, cost: call.op.cost },
): Call {
  const lists = (operandsOf: (tensor: TensorUpdate) => readonly Operand[], count: number) =>
    Array.from({ length: count }, (_, role) => tensors.map((tensor) => operandsOf(tensor)[role]!)).flat();
  const outputs = lists((tensor) => tensor.outputs, byTensor.written);
  const own = [...lists((tensor) => tensor.inputs, tensors[0]!.inputs.length), ...shared];
  const op = gpuOp(kernel.name, (context, operands, written, _, fused) => {
    const [first, second] = operands.slice(own.length);
    const numbers = { coefficients: first!.address, factor: second?.address ?? 0 };
    kernel.launch(context, operands.slice(0, own.length), written, numbers, fused?.copies);
  });
  const { mutates } = call.op;
  const { cost, strided = false } = kernel;
  const part = {
    ...call,
    op: {
      ...op,
      cuda: { ...op.cuda, strided, rewrites: { copied: tensors.length } },
      ...(cost && { cost }),
      ...(mutates && { mutates: outputs.map((_, i) => i) }),
    },
    inputs: [...own, coefficients, ...(factor ? [factor] : [])],
    outputs,
    live: null,
  };
  return withCopies(
    part,
    tensors.map(({ copy }) => copy),
  );
}
