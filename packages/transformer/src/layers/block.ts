import { type Tensor, add, checkCount, checkFlag } from '@roofline/tensor-core';
import { type AttentionOptions, CausalSelfAttention, checkAttentionOptions } from './attention.ts';
import {
  type FeedForward,
  type Norm,
  checkEpsilon,
  checkFeedForward,
  checkNorm,
  feedForwardOf,
  normOf,
} from './block-kinds.ts';
import type { AttentionCache } from '../generation/key-value-cache.ts';
import type { GeluNetwork } from './gelu-network.ts';
import type { LayerNorm } from './layer-norm.ts';
import { Module } from '../module/module.ts';
import type { RMSNorm } from './rms-norm.ts';
import type { SwiGLU } from './swiglu.ts';

export interface BlockOptions extends AttentionOptions {
  readonly feedForwardDimension: number;
  /** Default `swiglu`. */
  readonly feedForward?: FeedForward;
  /** Whether the products of the feed-forward network have biases. Default false. */
  readonly feedForwardBias?: boolean;
  /** Default `rms`. */
  readonly norm?: Norm;
  /** Default 1e-5. */
  readonly normEpsilon?: number;
}

const ownOptions = ['feedForwardDimension', 'feedForward', 'feedForwardBias', 'norm', 'normEpsilon'] as const;

/** A pre-norm layer: x + attention(norm(x)), then the same with the feed-forward network. [B, T, d] -> [B, T, d]. */
export class TransformerBlock extends Module<[x: Tensor, cache?: AttentionCache], Tensor> {
  readonly attn: CausalSelfAttention;
  readonly ffn: SwiGLU | GeluNetwork;
  readonly ln1: RMSNorm | LayerNorm;
  readonly ln2: RMSNorm | LayerNorm;

  constructor(options: BlockOptions) {
    super();
    checkAttentionOptions('TransformerBlock', options, ownOptions);
    const {
      feedForwardDimension,
      feedForward = 'swiglu',
      feedForwardBias: bias = false,
      ...others
    } = options;
    const { norm = 'rms', normEpsilon = 1e-5, ...attention } = others;
    const { modelDimension, device, dtype, generator } = attention;
    checkCount('TransformerBlock', 'feedForwardDimension', feedForwardDimension, 1);
    checkFlag('TransformerBlock', 'feedForwardBias', bias);
    checkFeedForward('TransformerBlock', feedForward);
    checkNorm('TransformerBlock', norm);
    checkEpsilon('TransformerBlock', 'normEpsilon', normEpsilon);
    this.attn = new CausalSelfAttention(attention);
    const network = { device, dtype, generator, bias };
    this.ffn = feedForwardOf(feedForward, modelDimension, feedForwardDimension, network);
    this.ln1 = normOf(norm, modelDimension, { device, dtype }, normEpsilon);
    this.ln2 = normOf(norm, modelDimension, { device, dtype }, normEpsilon);
  }

  protected override compute(x: Tensor, cache?: AttentionCache): Tensor {
    const attended = add(x, this.attn.forward(this.ln1.forward(x), cache));
    return add(attended, this.ffn.forward(this.ln2.forward(attended)));
  }
}
