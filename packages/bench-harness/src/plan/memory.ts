import type { Layout } from './layout.ts';
import { elementBytes, FLOAT32_BYTES, layerWidths, parameterUnits, type StepSetting } from './setting.ts';

/** Bytes on one rank, by what they hold. */
export interface MemoryPlan {
  /** Float32 parameters. */
  readonly weights: number;
  /** Their copies in the dtype of the products, kept from forward to backward; sharded ones are gathered anew. */
  readonly casts: number;
  readonly gradients: number;
  readonly moments: number;
  readonly activations: number;
  readonly logits: number;
  /** What is gathered, or waits to be reduced. */
  readonly buffers: number;
  /** The most at once: gradients that come while activations go do not add up. */
  readonly peak: number;
}

/**
 * The bytes of a step of mixed precision with AdamW (ZeRO's 16 bytes a parameter, Rajbhandari et al. 2020, without its copy in
 * low precision, which lives only from forward to backward). `gradientsStay` where they lie in buckets of their own.
 */
export function memoryOf(
  layout: Layout,
  setting: StepSetting,
  gradientsStay = layout.replicate * layout.shard > 1,
): MemoryPlan {
  const { tensor, shard, replicate, shardsMoments } = layout;
  const units = parameterUnits(setting);
  const held = units.total / (tensor * shard);
  const weights = FLOAT32_BYTES * held;
  const moments = (2 * FLOAT32_BYTES * held) / (shardsMoments ? replicate : 1);
  const casts = setting.dtype === 'float32' || shard > 1 ? 0 : elementBytes(setting.dtype) * held;
  const { activations, logits } = activationBytes(setting, tensor);
  const buffers = bufferBytes(layout, setting);
  const [gradients, passing] = [weights, casts + activations + logits];
  const most = gradientsStay ? gradients + passing : Math.max(gradients, passing);
  return {
    ...{ weights, casts, gradients, moments, activations, logits, buffers },
    peak: weights + moments + buffers + most,
  };
}

/**
 * What forward saves for backward: of a token and layer both norms' inputs in float32, in the dtype of the products both
 * norms' outputs, queries, keys, values, merged heads, and what the feed-forward network keeps (SwiGLU three of its width); plain attention its weights,
 * flash a float32 for each head. Of what is made again, the layer's input and one layer whole. Logits in the dtype of the products, and
 * once more in float32. What tensor parallel ranks gather they keep: both norms' outputs and the last one's of all their tokens.
 */
function activationBytes(
  { shape, context, batch, dtype, attention, recompute }: StepSetting,
  tensor: number,
) {
  const { modelDimension: d, feedForwardDimension: ff, layers, heads, vocabularySize } = shape;
  const bytes = elementBytes(dtype);
  const tokens = batch * context;
  const attended = attention === 'plain' ? heads * context * bytes : heads * FLOAT32_BYTES;
  const { queries, keys, hidden, normed } = layerWidths(shape);
  const unturned = normed ? queries + keys : 0;
  const layer =
    (2 * tensor * d + 2 * queries + 2 * keys + unturned + hidden * ff) * bytes +
    2 * d * FLOAT32_BYTES +
    attended;
  const input = d * FLOAT32_BYTES;
  const kept = { block: input, 'attention-kept': input + queries * bytes + heads * FLOAT32_BYTES };
  const ofLayers = recompute === 'none' ? layers * layer : layers * kept[recompute] + layer;
  const end = d * (FLOAT32_BYTES + tensor * bytes);
  const logits = vocabularySize * (bytes + FLOAT32_BYTES);
  return { activations: tokens * (ofLayers + end), logits: tokens * logits };
}

/** Two neighbouring units whole, in the dtype of the products and as float32 gradients; activations of a tensor group. */
function bufferBytes({ tensor, shard }: Layout, { shape, dtype, batch, context }: StepSetting): number {
  const bytes = elementBytes(dtype);
  const { embedding, layer, layers, head } = parameterUnits({ shape, context });
  const pair =
    layers > 1 ? Math.max(2 * layer, layer + Math.max(embedding, head)) : layer + Math.max(embedding, head);
  const whole = shard > 1 ? ((bytes + FLOAT32_BYTES) * pair) / tensor : 0;
  const gathered = tensor > 1 ? 2 * batch * context * tensor * shape.modelDimension * bytes : 0;
  return whole + gathered;
}
