import { type DType, computeDType } from '../../base/dtype.ts';
import { type ComputeOp, defineOp } from '../op.ts';

export interface CastAttributes {
  readonly dtype: DType;
}

/** The same values as another dtype, without a gradient: what autocast runs; `cast` adds the gradient. */
export const castOp: ComputeOp<CastAttributes> = defineOp<CastAttributes>({
  name: 'cast',
  autocast: 'none',
  infer: ([x], { dtype }) => [{ shape: x!.shape, dtype }],
  variant: ({ dtype }) => dtype,
  cuda: { kind: 'pointwise', expressions: ({ dtype }) => [dtype === 'bool' ? 'a != 0' : 'a'] },
  cpu: {
    kind: 'onnx',
    // The device rounds low-precision outputs itself; see OnnxLowering.
    build: (graph, [x], { dtype }) => [graph.cast(x!, dtype === 'bool' ? dtype : computeDType([dtype], []))],
  },
});
