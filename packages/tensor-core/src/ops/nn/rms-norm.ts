import { checkOptions } from '@roofline/cuda/host';
import { requireTensor } from '../../op/require-tensor.ts';
import { apply } from '../../op/apply.ts';
import { bytesOf } from '../../op/cost.ts';
import { type DType, checkDType, computeDType } from '../../base/dtype.ts';
import { DTypeError } from '../../base/errors.ts';
import type { MemoryView } from '../../base/memory-view.ts';
import { defineOp } from '../../op/op.ts';
import { sizeOf } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { cast } from '../copy/cast.ts';
import { add, mul } from '../elementwise/arithmetic.ts';
import { rsqrt } from '../elementwise/math.ts';
import { mean } from '../reduce/reductions.ts';
import { hasNormNode, lastMean, statisticsBySums, statisticsOfNothing, sumToLast } from './norm-graph.ts';
import {
  type NormBackward,
  checkEps,
  checkNorm,
  deferredNormSums,
  launchNorm,
  launchNormBackward,
  normFusion,
} from './norm-kernel.ts';

interface RmsNormAttributes {
  readonly eps: number;
  readonly dtype: DType;
}

const rmsNormOp = defineOp<RmsNormAttributes>({
  name: 'rmsNorm',
  // Its statistics are in float32, whatever x's dtype.
  autocast: 'none',
  infer: ([x, weight], { dtype }) => {
    checkNorm('rmsNorm', x!, { weight: weight! });
    if (computeDType([dtype], []) !== computeDType([x!.dtype], [])) {
      throw new DTypeError(`rmsNorm: of ${x!.dtype} the result cannot be ${dtype}; cast() it.`);
    }
    return [
      { shape: x!.shape, dtype },
      { shape: x!.shape.slice(0, -1), dtype: computeDType([x!.dtype], []) },
    ];
  },
  saves: () => ({ inputs: [0, 1], outputs: [1] }),
  gradient: ({ gradients, input, output, destination }) =>
    apply(
      rmsNormBackwardOp,
      [gradients[0]!, input(0), input(1), output(1)],
      undefined,
      [0, 1].map(destination),
    ),
  reference: ([x, weight], { eps, dtype }) => {
    const wide = cast(x!, computeDType([x!.dtype], []));
    const rstd = rsqrt(add(mean(mul(wide, wide), { dims: -1, keepDims: true }), eps));
    return [cast(mul(mul(wide, rstd), weight!), dtype)];
  },
  cost: (inputs, outputs) => ({
    flops: 4 * sizeOf(outputs[0]!.shape),
    bytesMoved: bytesOf(inputs) + bytesOf(outputs),
  }),
  cuda: {
    kind: 'custom',
    rewrites: { fusion: normFusion },
    launch: (context, [x, weight], [y, rstd], { eps }, fused) =>
      launchNorm(context, { x: x!, weight: weight!, y: y!, rstd: rstd! }, eps, fused?.fusion),
  },
  cpu: {
    kind: 'onnx',
    build: (graph, [x, weight], { eps }) => {
      const w = graph.cast(weight!, x!.dtype);
      const rows = x!.shape.slice(0, -1);
      if (x!.shape.at(-1) === 0) return [x!, statisticsOfNothing(graph, x!)];
      if (!hasNormNode(x!)) {
        const { normal, rstd } = statisticsBySums(graph, x!, eps, false);
        return [graph.node('Mul', [normal, w]), graph.reshape(rstd, rows)];
      }
      const specs = [x!, { ...x!, shape: [...rows, 1] }];
      const attributes = { axis: -1, epsilon: eps };
      const [y, rstd] = graph.nodes('SimplifiedLayerNormalization', [x!, w], attributes, specs);
      return [y!, graph.reshape(rstd!, rows)];
    },
  },
});

function backwardTensors([dy, x, weight, rstd]: readonly MemoryView[], dx: MemoryView): NormBackward {
  return { dy: dy!, x: x!, weight: weight!, rstd: rstd!, dx };
}

/** dx and dweight from dy, x, weight and rstd. */
const rmsNormBackwardOp = defineOp({
  name: 'rmsNormBackward',
  autocast: 'none',
  infer: ([, x, weight]) => [
    { shape: x!.shape, dtype: x!.dtype },
    { shape: weight!.shape, dtype: weight!.dtype },
  ],
  cost: (inputs, outputs) => ({
    flops: 10 * sizeOf(outputs[0]!.shape),
    bytesMoved: bytesOf(inputs) + bytesOf(outputs),
  }),
  cuda: {
    kind: 'custom',
    rewrites: { fusion: normFusion, deferred: deferredNormSums(backwardTensors) },
    launch: (context, inputs, [dx, ...rest], _, fused) =>
      launchNormBackward(context, backwardTensors(inputs, dx!), rest, fused?.fusion),
  },
  cpu: {
    kind: 'onnx',
    // x̂ = x · rstd;  dx = rstd · (dy·w - x̂ · mean(dy·w·x̂));  dw = Σ dy·x̂
    build: (graph, [dy, x, weight, rstd]) => {
      const scale = graph.reshape(rstd!, [...rstd!.shape, 1]);
      const normal = graph.node('Mul', [x!, scale]);
      const product = graph.node('Mul', [dy!, normal]);
      const w = graph.cast(weight!, x!.dtype);
      const mean = lastMean(graph, graph.node('Mul', [product, w]));
      const difference = graph.node('Sub', [graph.node('Mul', [dy!, w]), graph.node('Mul', [normal, mean])]);
      return [graph.node('Mul', [difference, scale]), sumToLast(graph, product)];
    },
  },
});

/** Options of `rmsNorm`. */
export interface RmsNormOptions {
  /** The result's dtype. Default x's. */
  dtype?: DType;
}

/**
 * x / √(mean(x²) + eps) · weight along the last dimension (Zhang & Sennrich 2019), with statistics in float32.
 * x: [..., D], weight: [D]; the result has x's shape and, unless `dtype` says otherwise, its dtype: a norm of
 * float32 for a product in low precision needs no cast between them. Throws a ShapeError or DTypeError.
 */
export function rmsNorm(x: Tensor, weight: Tensor, eps = 1e-5, options: RmsNormOptions = {}): Tensor {
  requireTensor('rmsNorm', x);
  checkOptions('rmsNorm', options, ['dtype']);
  const { dtype = x.dtype } = options;
  checkDType('rmsNorm', dtype);
  checkEps('rmsNorm', eps);
  const [y, rstd] = apply(rmsNormOp, [x, weight], { eps, dtype });
  rstd!.dispose();
  return y!;
}
