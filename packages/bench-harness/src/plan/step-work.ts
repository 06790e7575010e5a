import { elementBytes, FLOAT32_BYTES, layerWidths, parameterUnits, type StepSetting } from './setting.ts';

/** AdamW reads parameter, gradient and two moments, and writes all but the gradient. */
const ADAMW_BYTES = 7 * FLOAT32_BYTES;

/** Work of one phase, by what bounds it. */
export interface WorkOfPhase {
  /** Of products. */
  readonly flops: number;
  /** Of flash attention's kernels, which have ceilings of their own: in its forward and in its backward pass. */
  readonly attended: number;
  readonly attendedBackward: number;
  /** Moved by everything else. */
  readonly bytes: number;
}

/** The work of one rank's step. */
export interface StepWork {
  readonly forward: WorkOfPhase;
  readonly backward: WorkOfPhase;
  readonly optimizer: WorkOfPhase;
  /** What attention has of forward and of backward, but for the bytes. */
  readonly attention: Readonly<Record<'forward' | 'backward', WorkOfPhase>>;
  /** FLOPs of forward and backward, without those made again: what counts as useful. */
  readonly modelFlops: number;
}

/** What a rank has of a model and of a step. */
export interface RankShare {
  /** Parameters that it casts to the dtype of the products, and that its optimizer updates. */
  readonly cast: number;
  readonly updated: number;
  /** Ranks with which it shares each sequence, itself among them. Default 1. */
  readonly contextRanks?: number;
}

/**
 * FLOPs of products and attention, and the bytes of everything else, each tensor that must exist written once and read by
 * each op that needs it. A token and layer move 8 d elements of norms and residuals, queries and keys twice for RoPE, and 3 d_ff of SwiGLU
 * forward, all in all 12 d + 3 d_ff of as many heads of keys as of queries, and 14 d + 5 d_ff backward; plain attention moves each
 * score 4 and 6 times; logits move twice and 4 times.
 */
export function stepWork(setting: StepSetting, { cast, updated, contextRanks = 1 }: RankShare): StepWork {
  const { shape, context, batch, dtype, attention, recompute } = setting;
  const { modelDimension: d, feedForwardDimension: ff, layers, heads, vocabularySize } = shape;
  const tokens = batch * context;
  const bytes = elementBytes(dtype);
  const { queries, keys, hidden, normed, weights } = layerWidths(shape);
  const layerFlops = 2 * tokens * layers * weights;
  const headFlops = 2 * tokens * vocabularySize * d;
  const scores = attention === 'plain' ? heads * context * seenShare(contextRanks) : 0;
  const moved = (perTokenOfLayer: number, logits: number) =>
    bytes * tokens * (layers * perTokenOfLayer + logits * vocabularySize);
  // Rotary positions read and write them, as norms of them do.
  const turned = (queries + keys) * ((shape.positions === 'learned' ? 0 : 2) + (normed ? 2 : 0));
  const layerForward = 8 * d + turned + hidden * ff + 4 * scores;
  const casts = dtype === 'float32' ? 0 : (FLOAT32_BYTES + bytes) * cast;
  const ofAttention = attentionWork(setting, contextRanks);
  const { flops: plain, attended: flash } = ofAttention.forward;
  const products = layerFlops + headFlops;
  const [flopsAgain, movedAgain] = recompute === 'none' ? [0, 0] : [layerFlops, layerForward];
  return {
    attention: ofAttention,
    forward: {
      ...ofAttention.forward,
      flops: products + plain,
      bytes: moved(layerForward, 2) + casts,
    },
    backward: {
      ...ofAttention.backward,
      flops: 2 * products + flopsAgain + ofAttention.backward.flops,
      bytes: moved(10 * d + turned + (2 * hidden - 1) * ff + 6 * scores + movedAgain, 4),
    },
    optimizer: { flops: 0, attended: 0, attendedBackward: 0, bytes: ADAMW_BYTES * updated },
    modelFlops: 3 * (products + plain) + 3.5 * flash,
  };
}

/**
 * Plain attention multiplies whole matrices, as other products; flash only what the causal mask leaves, and 2.5 times that backward. As
 * many sequences for each rank are as much work where they are divided: two chunks of each that see as many keys as those of others.
 */
function attentionWork(
  { shape, context, batch, attention, recompute }: StepSetting,
  contextRanks: number,
): StepWork['attention'] {
  const whole = 4 * batch * context ** 2 * layerWidths(shape).queries * shape.layers;
  const [plain, flash] = attention === 'plain' ? [whole * seenShare(contextRanks), 0] : [0, whole / 2];
  const again = recompute === 'block' ? 1 : 0;
  return {
    forward: { flops: plain, attended: flash, attendedBackward: 0, bytes: 0 },
    backward: {
      flops: (2 + again) * plain,
      ...{ attended: again * flash, attendedBackward: 2.5 * flash, bytes: 0 },
    },
  };
}

/** Of the matrix of all scores what plain attention makes: all of the tokens of one rank, half of those of a rank and another. */
function seenShare(contextRanks: number): number {
  return (contextRanks + 1) / (2 * contextRanks);
}

/** The work of a rank that has a whole model. */
export function wholeStepWork(setting: StepSetting): StepWork {
  const { total } = parameterUnits(setting);
  return stepWork(setting, { cast: total, updated: total });
}
