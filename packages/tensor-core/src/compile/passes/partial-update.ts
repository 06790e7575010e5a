import type { UpdateByTensor } from '../../op/cuda-lowering.ts';
import type { Call, Operand } from '../graph/graph.ts';
import { byteSize } from '../../base/dtype.ts';
import { withCopies, withoutCopies } from './copying-op.ts';
import { gpuOp } from './gpu-op.ts';
import type { Rewrite } from './rewrite.ts';

/** What a call updates of one tensor. */
export interface TensorUpdate {
  /** By role. */
  readonly inputs: readonly Operand[];
  /** The written ones of them. */
  readonly outputs: readonly Operand[];
  /** In lower precision. */
  readonly copy: Operand | null;
}

/** An update of several tensors, without the copies that it writes. */
export interface Update {
  readonly call: Call;
  readonly byTensor: UpdateByTensor<never>;
  readonly shared: readonly Operand[];
  readonly tensors: readonly TensorUpdate[];
}

/** The numbers that parts of an update read. */
export interface UpdateNumbers {
  readonly coefficients: Operand;
  /** By which what tensors are updated by is multiplied first; null for nothing. */
  readonly factor: Operand | null;
}

/** What a call updates, tensor by tensor; null for one that is no such update. */
export function updateOf(call: Call): Update | null {
  const { call: plain, copies } = withoutCopies(call);
  const { cuda } = plain.op;
  if (cuda.kind !== 'custom' || !cuda.byTensor) return null;
  const { written, roles } = cuda.byTensor;
  const count = plain.outputs.length / written;
  const ofTensor = (operands: readonly Operand[], lists: number, tensor: number) =>
    Array.from({ length: lists }, (_, role) => operands[role * count + tensor]!);
  const tensors = Array.from({ length: count }, (_, tensor) => ({
    inputs: ofTensor(plain.inputs, roles, tensor),
    outputs: ofTensor(plain.outputs, written, tensor),
    copy: copies[tensor] ?? null,
  }));
  return { call: plain, byTensor: cuda.byTensor, shared: plain.inputs.slice(roles * count), tensors };
}

/** What a tensor is updated by. */
export function updatedBy({ byTensor }: Update, { inputs }: TensorUpdate): readonly Operand[] {
  return inputs.slice(byTensor.written);
}

/** Writes the coefficients that all parts of an update read, in front of all calls. */
export function hoistCoefficients(rewrite: Rewrite, { call, byTensor }: Update): Operand {
  const output = addNumbers(rewrite, byTensor.coefficientCount);
  const op = gpuOp(`${call.op.name}_coefficients`, (context, _, [memory], attributes) =>
    byTensor.coefficients(context, memory!, attributes),
  );
  rewrite.hoist({ ...call, op, inputs: [], outputs: [output] }, rewrite.graph.calls[0]!);
  return output;
}

/** Makes room for float32 numbers. */
export function addNumbers(rewrite: Rewrite, size: number): Operand {
  const byteLength = size * byteSize('float32');
  const storage = rewrite.add({ byteLength, dtype: 'float32', source: { kind: 'made' } }, () => new Map());
  const layout = { shape: [size], strides: [1], offset: 0, isContiguous: true };
  return { storage, dtype: 'float32', size, byteLength, ...layout };
}

/** The update of some of its tensors. */
export function partialUpdate(
  { call, byTensor, shared }: Update,
  tensors: readonly TensorUpdate[],
  { coefficients, factor }: UpdateNumbers,
): Call {
  const lists = (operandsOf: (tensor: TensorUpdate) => readonly Operand[], count: number) =>
    Array.from({ length: count }, (_, role) => tensors.map((tensor) => operandsOf(tensor)[role]!)).flat();
  const outputs = lists((tensor) => tensor.outputs, byTensor.written);
  const own = [...lists((tensor) => tensor.inputs, byTensor.roles), ...shared];
  const op = gpuOp(call.op.name, (context, operands, written, _, __, copies) => {
    const [first, second] = operands.slice(own.length);
    const numbers = { coefficients: first!.address, factor: second?.address ?? 0 };
    byTensor.launch(context, operands.slice(0, own.length), written, numbers, copies);
  });
  const { cost, mutates } = call.op;
  const part = {
    ...call,
    op: {
      ...op,
      cuda: { ...op.cuda, copied: tensors.length },
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
