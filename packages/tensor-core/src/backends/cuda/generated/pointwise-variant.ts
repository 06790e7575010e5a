import type { PointwiseKernel, PointwiseValue } from '../../../op/cuda-lowering.ts';
import { type DType, byteSize } from '../../../base/dtype.ts';
import { DTypeError } from '../../../base/errors.ts';
import type { ComputeOp } from '../../../op/op.ts';
import type { HostMemory } from '@roofline/cuda/host';
import { type PointwiseSignature, inputsRead, scalarDType } from './pointwise-kernel.ts';

/** An op with certain attributes: its expressions, and the kernels generated from them by dtypes and layouts. */
export interface PointwiseVariant {
  /** The kernels' name, a C identifier. */
  readonly name: string;
  readonly expressions: readonly string[];
  readonly values: readonly PointwiseValue[];
  /** Indices of the inputs that the expressions read. */
  readonly read: readonly number[];
  readonly scalars: number;
  /** By a numeric key of dtypes and layouts. */
  readonly kernels: Map<number, GeneratedKernel>;
}

/** A loaded kernel and where its arguments lie. */
export interface GeneratedKernel {
  /** The CUfunction. */
  readonly handle: number;
  readonly vectorLength: number;
  readonly scalarDType: DType;
  readonly scalarOffset: number;
  readonly argumentBytes: number;
}

export const maxInputs = 8;
export const maxOperands = 10;

/** An op with these attributes. Throws a DTypeError for an op of too many operands. */
export function variantOf<A>(
  op: ComputeOp<A>,
  inputCount: number,
  outputCount: number,
  attributes: A,
): PointwiseVariant {
  if (inputCount > maxInputs || inputCount + outputCount > maxOperands) {
    throw new DTypeError(
      `${op.name}: a pointwise op takes at most ${maxInputs} inputs and ${maxOperands} operands in all.`,
    );
  }
  const kernel = op.cuda as PointwiseKernel<A>;
  const expressions = kernel.expressions(attributes);
  const values = kernel.values?.(attributes) ?? [];
  return {
    name: `pointwise_${op.name.replace(/\W/g, '_')}`,
    expressions,
    values,
    read: inputsRead([...values.map(({ text }) => text), ...expressions], inputCount),
    scalars: op.scalars?.(attributes).length ?? 0,
    kernels: new Map(),
  };
}

/** A variant for given dtypes. */
export function signatureOf(
  { name, expressions, values, scalars }: PointwiseVariant,
  inputs: readonly { readonly dtype: DType }[],
  outputs: readonly { readonly dtype: DType }[],
): PointwiseSignature {
  const dtypes = (operands: readonly { readonly dtype: DType }[]) => operands.map(({ dtype }) => dtype);
  return { name, expressions, values, scalars, inputs: dtypes(inputs), outputs: dtypes(outputs) };
}

/** Where the arguments of a kernel lie whose scalars follow `end` bytes of other arguments. */
export function placeScalars(
  signature: PointwiseSignature,
  end: number,
): Pick<GeneratedKernel, 'scalarDType' | 'scalarOffset' | 'argumentBytes'> {
  const dtype = scalarDType(signature);
  const bytes = byteSize(dtype);
  const scalarOffset = Math.ceil(end / bytes) * bytes;
  const argumentBytes = signature.scalars > 0 ? scalarOffset + bytes * signature.scalars : end;
  return { scalarDType: dtype, scalarOffset, argumentBytes };
}

export function writeScalars(memory: HostMemory, kernel: GeneratedKernel, scalars: readonly number[]): void {
  const { scalarDType, scalarOffset } = kernel;
  for (let i = 0; i < scalars.length; i++) {
    const value = scalars[i]!;
    if (scalarDType === 'float32') memory.floats[scalarOffset / 4 + i] = value;
    else if (scalarDType === 'float64') memory.doubles[scalarOffset / 8 + i] = value;
    else if (scalarDType === 'int32') memory.words[scalarOffset / 4 + i] = value;
    else if (scalarDType === 'int64') memory.writeInt64(scalarOffset + 8 * i, value);
    else memory.bytes[scalarOffset + i] = value === 0 ? 0 : 1;
  }
}
