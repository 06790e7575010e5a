import { applyOne } from '../apply.ts';
import { type DType, computeDType } from '../dtype.ts';
import { defineOp } from '../op.ts';
import type { Tensor } from '../tensor.ts';

interface CastAttributes {
  readonly dtype: DType;
}

const castOp = defineOp<CastAttributes>({
  name: 'cast',
  autocast: 'none',
  infer: ([x], { dtype }) => [{ shape: x!.shape, dtype }],
  gradient: ({ gradients, inputSpecs }) => [cast(gradients[0]!, inputSpecs[0]!.dtype)],
  variant: ({ dtype }) => dtype,
  cuda: { kind: 'pointwise', expressions: ({ dtype }) => [dtype === 'bool' ? 'a != 0' : 'a'] },
  cpu: {
    kind: 'onnx',
    // The device rounds low-precision outputs itself; see OnnxLowering.
    build: (graph, [x], { dtype }) => [graph.cast(x!, dtype === 'bool' ? dtype : computeDType([dtype], []))],
  },
});

/** The same values as another dtype; floating-point values become integers by truncation. */
export function cast(x: Tensor, dtype: DType): Tensor {
  return x.dtype === dtype ? x : applyOne(castOp, [x], { dtype });
}
