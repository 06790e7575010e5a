import {
  type ComputeOp,
  type Cost,
  type OnnxGraph,
  type OnnxValue,
  type Tensor,
  type TensorSpec,
  apply,
  byteSize,
  contiguous,
  defineOp,
  sizeOf,
  zerosLike,
} from '@roofline/tensor-core';
import { buildBackward } from './cpu/backward-graph.ts';
import { buildForward } from './cpu/forward-graph.ts';
import { isWrittenByTma, launchBackward, launchForward } from './cuda/launch.ts';
import { accumulatorDType } from './dtypes.ts';
import { type HeadLayout, headLayout, storedDimensions, swapLayout } from './head-layout.ts';
import { attentionSizes, visiblePairs } from './operands.ts';
import type { AttentionSettings } from './options.ts';
import { plainAttention } from './reference.ts';

export interface FlashAttentionAttributes extends AttentionSettings {
  /** Whether backward must add in one order. */
  readonly deterministic: boolean;
  /** How the output lies in memory. */
  readonly layout: HeadLayout;
}

interface FlashAttentionBackwardAttributes extends AttentionSettings {
  readonly deterministic: boolean;
  /** How the gradients of q, k and v lie in memory. */
  readonly layouts: readonly HeadLayout[];
}

/** Products in the forward pass and, with the weights calculated again, in the backward pass. */
const [forwardProducts, backwardProducts] = [2, 5];

/**
 * Of q, k and v: the output, stored in its layout; the log-sum-exp [batch, heads, queries]; and for
 * backward [batch, heads, queries, 2], the largest score of each row and the sum of its weights, to which the log-sum-exp
 * is equal but for rounding: exp(score - lse) is off by as much as lse, which at large scores costs float32 the last
 * digits. In low precision they do not matter, and the last output is empty.
 */
export const flashAttentionOp: ComputeOp<FlashAttentionAttributes> = defineOp<FlashAttentionAttributes>({
  name: 'flashAttention',
  autocast: 'lower',
  infer: ([q, k, v], { layout }) => {
    const { batch, heads, queries } = attentionSizes('flashAttention', q!, k!, v!);
    const [shape, dtype] = [[batch, heads, queries], accumulatorDType(q!.dtype)];
    return [
      { shape: storedDimensions(q!.shape, layout), dtype: q!.dtype },
      { shape, dtype },
      { shape: dtype === q!.dtype ? [...shape, 2] : [0], dtype },
    ];
  },
  saves: () => ({ inputs: [0, 1, 2], outputs: [0, 1, 2] }),
  gradient: ({ gradients: [gradO, gradLse], attributes, input, output }) => {
    const { causal, scale, deterministic, layout } = attributes;
    const operands = [input(0), input(1), input(2)];
    const o = swapLayout(output(0), layout);
    const gradient = gradO ? swapLayout(gradO, layout) : zerosLike(o);
    const inputs = [...operands, o, output(1), output(2), gradient, ...(gradLse ? [gradLse] : [])];
    const layouts = operands.map(headLayout);
    const stored = apply(flashAttentionBackwardOp, inputs, { causal, scale, deterministic, layouts });
    return stored.map((x, i) => swapLayout(x, layouts[i]!));
  },
  reference: (inputs, { layout, ...settings }) => {
    const { output, lse } = plainAttention(inputs as [Tensor, Tensor, Tensor], settings);
    return [contiguous(swapLayout(output, layout)), lse];
  },
  cost: (inputs, outputs, { causal }) => costOfProducts(inputs, outputs, causal, forwardProducts),
  cuda: { kind: 'custom', strided: true, launch: launchForward },
  cpu: {
    kind: 'onnx',
    build: (graph, inputs, { layout, ...settings }, { outputs }) => {
      const [q, k, v] = inputs;
      const sizes = attentionSizes('flashAttention', q!, k!, v!);
      const { output, lse, statistics } = buildForward(graph, inputs, sizes, settings);
      const kept = outputs[2]!.shape[0] === 0 ? graph.constant(lse.dtype, [0], []) : statistics;
      return [inLayout(graph, output, layout), lse, kept];
    },
  },
});

/** The gradients of q, k and v, stored in their layouts; of q, k, v, what the forward pass gave, and gradients. */
export const flashAttentionBackwardOp = defineOp<FlashAttentionBackwardAttributes>({
  name: 'flashAttentionBackward',
  autocast: 'none',
  infer: (inputs, { layouts }) =>
    layouts.map((layout, i) => ({
      shape: storedDimensions(inputs[i]!.shape, layout),
      dtype: inputs[i]!.dtype,
    })),
  cost: (inputs, outputs, { causal }) => costOfProducts(inputs, outputs, causal, backwardProducts),
  cuda: {
    kind: 'custom',
    strided: true,
    rewrites: { writesStrided: isWrittenByTma },
    launch: launchBackward,
  },
  cpu: {
    kind: 'onnx',
    build: (graph, inputs, { layouts, ...settings }) => {
      const [q, k, v] = inputs;
      const sizes = attentionSizes('flashAttention', q!, k!, v!);
      return buildBackward(graph, inputs, sizes, settings).map((x, i) => inLayout(graph, x, layouts[i]!));
    },
  },
});

/** Of each product 2 · d FLOPs for a pair of a query and a key that it sees. */
function costOfProducts(
  inputs: readonly TensorSpec[],
  outputs: readonly TensorSpec[],
  causal: boolean,
  products: number,
): Cost {
  const [q, k, v] = inputs;
  const sizes = attentionSizes('flashAttention', q!, k!, v!);
  const { batch, heads, headDimension } = sizes;
  const pairs = batch * heads * visiblePairs(sizes, causal);
  const bytesMoved = [...inputs, ...outputs].reduce(
    (sum, { shape, dtype }) => sum + sizeOf(shape) * byteSize(dtype),
    0,
  );
  return { flops: 2 * products * headDimension * pairs, bytesMoved, boundBy: 'tensorCores' };
}

function inLayout(graph: OnnxGraph, x: OnnxValue, layout: HeadLayout): OnnxValue {
  if (layout === 'bhnd') return x;
  return graph.node('Transpose', [x], { perm: [0, 2, 1, 3] }, { shape: storedDimensions(x.shape, layout) });
}
