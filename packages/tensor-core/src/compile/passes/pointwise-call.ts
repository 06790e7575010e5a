import type { PointwiseKernel, PointwiseValue } from '../../op/cuda-lowering.ts';
import type { Call, Operand } from '../graph/graph.ts';
import { type DType, computeDType } from '../../base/dtype.ts';
import { inputsRead } from '../../backends/cuda/generated/pointwise-kernel.ts';

/** The texts of an element-wise call. */
export function textsOf({ op, attributes }: Call): {
  readonly values: readonly PointwiseValue[];
  readonly expressions: readonly string[];
} {
  const cuda = op.cuda as PointwiseKernel<never>;
  const values = cuda.values?.(attributes as never) ?? [];
  return { values, expressions: cuda.expressions(attributes as never) };
}

/** The expression of an element-wise call that has one output and no intermediate values; null for other calls. */
export function expressionOf(call: Call): string | null {
  if (call.op.cuda.kind !== 'pointwise' || call.outputs.length !== 1) return null;
  const { values, expressions } = textsOf(call);
  return values.length === 0 ? expressions[0]! : null;
}

/** The indices of the inputs that an element-wise call reads; others only contribute their dtype. */
export function placesRead(call: Call): number[] {
  const { values, expressions } = textsOf(call);
  return inputsRead([...values.map(({ text }) => text), ...expressions], call.inputs.length);
}

/** The dtype that a kernel of these operands calculates in. */
export function computeDTypeOf(inputs: readonly Operand[], outputs: readonly Operand[]): DType {
  const dtypes = (operands: readonly Operand[]) => operands.map(({ dtype }) => dtype);
  return computeDType(dtypes(inputs), dtypes(outputs));
}
