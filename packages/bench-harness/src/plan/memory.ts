import type { Layout } from './layout.ts';
import {
  elementBytes,
  FLOAT32_BYTES,
  layerWidths,
  parameterUnits,
  type StepSetting,
  withCopies,
} from './setting.ts';

/** `linearCrossEntropy` makes about so many bytes of logits at a time. */
const CHUNK_BYTES = 2 ** 30;

/**
 * The bytes on one rank, by what they hold, of a step of mixed precision with AdamW (ZeRO's 16 bytes a parameter, Rajbhandari et al. 2020, without its copy in
 * low precision, which lives only from forward to backward). `gradientsStay` where they lie in buckets of their own; those of
 * sharded parameters in a program are updated unit by unit, as they come.
 */
export function memoryOf(
  layout: Layout,
  asked: StepSetting,
  gradientsStay = layout.replicate * layout.shard > 1,
) {
  const { tensor, shard, replicate, shardsMoments } = layout;
  const setting = withCopies(asked, tensor);
  const units = parameterUnits(setting);
  const held = units.total / (tensor * shard);
  const weights = FLOAT32_BYTES * held;
  const moments = (2 * FLOAT32_BYTES * held) / (shardsMoments ? replicate : 1);
  const casts = setting.dtype === 'float32' || shard > 1 ? 0 : elementBytes(setting.dtype) * held;
  const { activations, logits } = activationBytes(layout, setting);
  const [gathered, ring] = [gatheredBytes(layout, setting), ringBytes(layout, setting)];
  const gradients = goByUnits(layout, setting) ? (FLOAT32_BYTES * units.layer) / (tensor * shard) : weights;
  // Logits are gone before attention has its gradients.
  const passing = casts + activations + Math.max(logits, ring);
  const most =
    gradientsStay || goByUnits(layout, setting) ? gradients + passing : Math.max(gradients, passing);
  return {
    // Parameters are float32; casts their copies in the dtype of the products, kept from forward to backward, where sharded ones are
    // gathered anew; buffers what is gathered, waits to be reduced or goes around a ring.
    ...{ weights, casts, gradients, moments, activations, logits, buffers: gathered + ring },
    /** The most at once: gradients that come while activations go do not add up. */
    peak: weights + moments + gathered + most,
  };
}

/** Whether a unit is updated once its gradients are reduced, which then go. */
function goByUnits({ shard }: Layout, { execution }: StepSetting): boolean {
  return shard > 1 && execution !== 'eager';
}

/**
 * What forward saves for backward: of a token and layer both norms' inputs, in float32, or where parameters are sharded, which are
 * gathered in the dtype of the products, in that; in it both norms' outputs, queries, keys, values, merged heads, and what the
 * feed-forward network keeps (SwiGLU three of its width); plain attention its weights, flash a float32 for each head, a ring two. Of
 * what is made again, the layer's input and one layer whole. Logits in the dtype of the products, and once more in float32; chunks of them
 * take no more than so much. What tensor parallel ranks gather they keep: both norms' outputs and the last one's of all their tokens.
 */
function activationBytes({ shard, tensor, context: ranks }: Layout, setting: StepSetting) {
  const { shape, context, batch, dtype, attention, recompute, logits: mode = 'whole' } = setting;
  const { modelDimension: d, feedForwardDimension: ff, layers, heads, vocabularySize } = shape;
  const bytes = elementBytes(dtype);
  const tokens = batch * context;
  const ofRows = heads * FLOAT32_BYTES * (ranks > 1 ? 2 : 1);
  const attended = attention === 'plain' && ranks === 1 ? heads * context * bytes : ofRows;
  const { queries, keys, hidden, normed } = layerWidths(shape);
  const unturned = normed ? queries + keys : 0;
  const input = d * (shard > 1 ? bytes : FLOAT32_BYTES);
  const layer =
    (2 * tensor * d + 2 * queries + 2 * keys + unturned + hidden * ff) * bytes + 2 * input + attended;
  const kept = { block: input, 'attention-kept': input + queries * bytes + ofRows };
  const ofLayers = recompute === 'none' ? layers * layer : layers * kept[recompute] + layer;
  const end = d * (FLOAT32_BYTES + tensor * bytes);
  const logits = tokens * vocabularySize * (bytes + FLOAT32_BYTES);
  return {
    activations: tokens * (ofLayers + end),
    logits: mode === 'chunked' ? Math.min(logits, CHUNK_BYTES) : logits,
  };
}

/**
 * Two neighbouring units whole, in the dtype of the products and as float32 gradients, of which a program has one; activations of a
 * tensor group.
 */
function gatheredBytes(layout: Layout, setting: StepSetting): number {
  const { tensor, shard } = layout;
  const { shape, dtype, batch, context } = setting;
  const bytes = elementBytes(dtype);
  const { embedding, layer, layers, head } = parameterUnits({ shape, context });
  const pair =
    layers > 1 ? Math.max(2 * layer, layer + Math.max(embedding, head)) : layer + Math.max(embedding, head);
  // What the head has is gone before the last layer has most.
  const whole = goByUnits(layout, setting)
    ? (2 * bytes + FLOAT32_BYTES) * layer
    : shard > 1
      ? (bytes + FLOAT32_BYTES) * pair
      : 0;
  const gathered = tensor > 1 ? 2 * batch * context * tensor * shape.modelDimension * bytes : 0;
  return whole / tensor + gathered;
}

/**
 * What the backward pass of ring attention has beyond what the feed-forward network has given back by then: the gradient of the
 * output and, in float32, three of the queries, of the keys and of the values: those so far, those of the part, and their sum.
 * Separate ops have weights and their gradients besides, of which a rank's own keys have most.
 */
function ringBytes({ context: ranks }: Layout, { shape, dtype, attention, batch, context }: StepSetting) {
  if (ranks === 1) return 0;
  const { queries, keys, hidden } = layerWidths(shape);
  const bytes = elementBytes(dtype);
  const scores = attention === 'plain' ? (shape.heads * context) / ranks : 0;
  const numbers = 3 * (queries + 2 * keys) + 2 * scores;
  const back = hidden * shape.feedForwardDimension * bytes;
  return batch * context * Math.max(0, queries * bytes + FLOAT32_BYTES * numbers - back);
}
