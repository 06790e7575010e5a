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
  /** FLOPs of forward and backward, without those made again: what counts as useful. */
  readonly modelFlops: number;
}

/** Parameters that a rank casts to the dtype of the products, and that its optimizer updates. */
export interface HeldParameters {
  readonly cast: number;
  readonly updated: number;
}

/**
 * FLOPs of products and attention, and the bytes of everything else, each tensor that must exist written once and read by
 * each op that needs it. A token and layer move 8 d elements of norms and residuals, queries and keys twice for RoPE, and 3 d_ff of SwiGLU
 * forward, all in all 12 d + 3 d_ff of as many heads of keys as of queries, and 14 d + 5 d_ff backward; plain attention moves each
 * score 4 and 6 times; logits move twice and 4 times.
 */
export function stepWork(setting: StepSetting, { cast, updated }: HeldParameters): StepWork {
  const { shape, context, batch, dtype, attention, recompute } = setting;
  const { modelDimension: d, feedForwardDimension: ff, layers, heads, vocabularySize } = shape;
  const tokens = batch * context;
  const bytes = elementBytes(dtype);
  const { queries, keys, hidden, normed, weights } = layerWidths(shape);
  const layerFlops = 2 * tokens * layers * weights;
  const headFlops = 2 * tokens * vocabularySize * d;
  const scores = attention === 'plain' ? heads * context : 0;
  const moved = (perTokenOfLayer: number, logits: number) =>
    bytes * tokens * (layers * perTokenOfLayer + logits * vocabularySize);
  // Rotary positions read and write them, as norms of them do.
  const turned = (queries + keys) * ((shape.positions === 'learned' ? 0 : 2) + (normed ? 2 : 0));
  const layerForward = 8 * d + turned + hidden * ff + 4 * scores;
  const casts = dtype === 'float32' ? 0 : (FLOAT32_BYTES + bytes) * cast;
  const attended = attentionFlops(setting);
  const [again, attendedAgain] = {
    none: [0, 0],
    block: [layerFlops + attended.plain, attended.flash],
    'attention-kept': [layerFlops, 0],
  }[recompute] as [number, number];
  const forwardFlops = layerFlops + headFlops + attended.plain;
  const [flashBackward, backwardFlops] = [2.5 * attended.flash, 2 * forwardFlops];
  return {
    forward: {
      flops: forwardFlops,
      attended: attended.flash,
      attendedBackward: 0,
      bytes: moved(layerForward, 2) + casts,
    },
    backward: {
      flops: backwardFlops + again,
      ...{ attended: attendedAgain, attendedBackward: flashBackward },
      bytes: moved(
        10 * d + turned + (2 * hidden - 1) * ff + 6 * scores + (recompute === 'none' ? 0 : layerForward),
        4,
      ),
    },
    optimizer: { flops: 0, attended: 0, attendedBackward: 0, bytes: ADAMW_BYTES * updated },
    modelFlops: forwardFlops + backwardFlops + attended.flash + flashBackward,
  };
}

/** Plain attention multiplies whole matrices, as other products; flash only what the causal mask leaves, and 2.5 times that backward. */
function attentionFlops({ shape, context, batch, attention }: StepSetting): { plain: number; flash: number } {
  const whole = 4 * batch * context ** 2 * layerWidths(shape).queries * shape.layers;
  return attention === 'plain' ? { plain: whole, flash: 0 } : { plain: 0, flash: whole / 2 };
}

/** The work of a rank that has a whole model. */
export function wholeStepWork(setting: StepSetting): StepWork {
  const { total } = parameterUnits(setting);
  return stepWork(setting, { cast: total, updated: total });
}
