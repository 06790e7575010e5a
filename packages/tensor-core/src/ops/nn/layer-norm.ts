import { refuseMore } from '../../op/require-tensor.ts';
import { apply } from '../../op/apply.ts';
import type { OnnxGraph, OnnxValue } from '../../onnx/graph.ts';
import { bytesOf } from '../../op/cost.ts';
import { computeDType } from '../../base/dtype.ts';
import type { MemoryView } from '../../base/memory-view.ts';
import { defineOp } from '../../op/op.ts';
import { sizeOf } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { cast } from '../copy/cast.ts';
import { add, mul, sub } from '../elementwise/arithmetic.ts';
import { rsqrt } from '../elementwise/math.ts';
import { mean } from '../reduce/reductions.ts';
import { hasNormNode, lastMean, statisticsBySums, statisticsOfNothing, sumToLast } from './norm-graph.ts';
import {
  checkNorm,
  normFusion,
  launchNorm,
  launchNormBackward,
  deferredNormSums,
  type NormBackward,
  checkEps,
} from './norm-kernel.ts';

interface LayerNormAttributes {
  readonly eps: number;
}

const layerNormOp = defineOp<LayerNormAttributes>({
  name: 'layerNorm',
  autocast: 'float32',
  infer: ([x, weight, bias]) => {
    checkNorm('layerNorm', x!, { weight: weight!, bias: bias! });
    const statistics = { shape: x!.shape.slice(0, -1), dtype: computeDType([x!.dtype], []) };
    return [{ shape: x!.shape, dtype: x!.dtype }, statistics, statistics];
  },
  saves: () => ({ inputs: [0, 1], outputs: [1, 2] }),
  gradient: ({ gradients, input, output, destination }) =>
    apply(
      layerNormBackwardOp,
      [gradients[0]!, input(0), input(1), output(1), output(2)],
      undefined,
      [0, 1, 2].map(destination),
    ),
  reference: ([x, weight, bias], { eps }) => {
    const wide = cast(x!, computeDType([x!.dtype], []));
    const centered = sub(wide, mean(wide, { dims: -1, keepDims: true }));
    const rstd = rsqrt(add(mean(mul(centered, centered), { dims: -1, keepDims: true }), eps));
    return [cast(add(mul(mul(centered, rstd), weight!), bias!), x!.dtype)];
  },
  cost: (inputs, outputs) => ({
    flops: 7 * sizeOf(outputs[0]!.shape),
    bytesMoved: bytesOf(inputs) + bytesOf(outputs),
  }),
  cuda: {
    kind: 'custom',
    rewrites: { fusion: normFusion },
    launch(context, [x, weight, bias], [y, mean, rstd], { eps }, fused) {
      const tensors = { x: x!, weight: weight!, bias: bias!, y: y!, mean: mean!, rstd: rstd! };
      launchNorm(context, tensors, eps, fused?.fusion);
    },
  },
  cpu: {
    kind: 'onnx',
    build: (graph, [x, weight, bias], { eps }) => {
      const [w, b] = [weight!, bias!].map((parameter) => graph.cast(parameter, x!.dtype));
      const rows = x!.shape.slice(0, -1);
      if (x!.shape.at(-1) === 0) {
        const statistics = statisticsOfNothing(graph, x!);
        return [x!, statistics, statistics];
      }
      if (x!.dtype === 'float64') {
        const { normal, mean, rstd } = statisticsBySums(graph, x!, eps, true);
        const y = graph.node('Add', [graph.node('Mul', [normal, w!]), b!]);
        return [y, graph.reshape(mean, rows), graph.reshape(rstd, rows)];
      }
      const { y, mean, rstd } = centeredNorm(graph, x!, w!, b!, eps);
      return [y, graph.reshape(mean, rows), graph.reshape(rstd, rows)];
    },
  },
});

/**
 * ONNX Runtime's node calculates the variance as E[x²] - E[x]², which has no digits left if the mean is far from zero; so the
 * mean is subtracted first. A variance beyond float32 gives an rstd of 0, which must not be taken for a result.
 */
function centeredNorm(graph: OnnxGraph, x: OnnxValue, weight: OnnxValue, bias: OnnxValue, eps: number) {
  const mean = lastMean(graph, x);
  const distance = graph.node('Sub', [x, mean]);
  const { y, rstd } = hasNormNode(x)
    ? normNode(graph, distance, weight, bias, eps)
    : normBySums(graph, distance, weight, bias, eps);
  // 0 / 0 is NaN.
  const overflow = graph.node('Div', [graph.scalar(x.dtype, 0), rstd], {}, mean);
  return { y: graph.node('Add', [y, overflow]), mean, rstd: graph.node('Add', [rstd, overflow]) };
}

function normNode(graph: OnnxGraph, x: OnnxValue, weight: OnnxValue, bias: OnnxValue, eps: number) {
  const statistics = { ...x, shape: [...x.shape.slice(0, -1), 1] };
  const attributes = { axis: -1, epsilon: eps };
  const specs = [x, statistics, statistics];
  const [y, , rstd] = graph.nodes('LayerNormalization', [x, weight, bias], attributes, specs);
  return { y: y!, rstd: rstd! };
}

function normBySums(graph: OnnxGraph, x: OnnxValue, weight: OnnxValue, bias: OnnxValue, eps: number) {
  const { normal, rstd } = statisticsBySums(graph, x, eps, false);
  return { y: graph.node('Add', [graph.node('Mul', [normal, weight]), bias]), rstd };
}

function backwardTensors([dy, x, weight, mean, rstd]: readonly MemoryView[], dx: MemoryView): NormBackward {
  return { dy: dy!, x: x!, weight: weight!, mean: mean!, rstd: rstd!, dx };
}

/** dx, dweight and dbias from dy, x, weight, mean and rstd. */
const layerNormBackwardOp = defineOp({
  name: 'layerNormBackward',
  autocast: 'float32',
  infer: ([, x, weight]) => {
    const parameter = { shape: weight!.shape, dtype: weight!.dtype };
    return [{ shape: x!.shape, dtype: x!.dtype }, parameter, parameter];
  },
  cost: (inputs, outputs) => ({
    flops: 13 * sizeOf(outputs[0]!.shape),
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
    // x̂ = (x - mean) · rstd;  dx = rstd · (dy·w - mean(dy·w) - x̂ · mean(dy·w·x̂));  dw = Σ dy·x̂;  db = Σ dy
    build: (graph, [dy, x, weight, mean, rstd]) => {
      const column = [...rstd!.shape, 1];
      const scale = graph.reshape(rstd!, column);
      const normal = graph.node('Mul', [graph.node('Sub', [x!, graph.reshape(mean!, column)]), scale]);
      const weighted = graph.node('Mul', [dy!, graph.cast(weight!, x!.dtype)]);
      const along = graph.node('Mul', [normal, lastMean(graph, graph.node('Mul', [weighted, normal]))]);
      const centered = graph.node('Sub', [weighted, lastMean(graph, weighted)]);
      const dx = graph.node('Mul', [graph.node('Sub', [centered, along]), scale]);
      return [dx, sumToLast(graph, graph.node('Mul', [dy!, normal])), sumToLast(graph, dy!)];
    },
  },
});

/**
 * (x - mean(x)) / √(var(x) + eps) · weight + bias along the last dimension (Ba et al. 2016), with the biased
 * variance and statistics in float32. x: [..., D], weight and bias: [D] of one dtype; the result has x's shape
 * and dtype. Throws a ShapeError or DTypeError.
 */
export function layerNorm(x: Tensor, weight: Tensor, bias: Tensor, eps = 1e-5, ...rest: []): Tensor {
  checkEps('layerNorm', eps);
  refuseMore('layerNorm', rest);
  const [y, mean, rstd] = apply(layerNormOp, [x, weight, bias], { eps });
  mean!.dispose();
  rstd!.dispose();
  return y!;
}
