import { type Tensor, add, checkCount } from '@roofline/tensor-core';
import { type AttentionOptions, CausalSelfAttention, checkAttentionOptions } from './attention.ts';
import type { AttentionCache } from '../generation/key-value-cache.ts';
import { Module } from '../module/module.ts';
import { RMSNorm } from './rms-norm.ts';
import { SwiGLU } from './swiglu.ts';

export interface BlockOptions extends AttentionOptions {
  readonly feedForwardDimension: number;
}

/** A pre-norm layer: x + attention(norm(x)), then the same with the feed-forward network. [B, T, d] -> [B, T, d]. */
export class TransformerBlock extends Module<[x: Tensor, cache?: AttentionCache], Tensor> {
  readonly attn: CausalSelfAttention;
  readonly ffn: SwiGLU;
  readonly ln1: RMSNorm;
  readonly ln2: RMSNorm;

  constructor(options: BlockOptions) {
    super();
    checkAttentionOptions('TransformerBlock', options, ['feedForwardDimension']);
    const { feedForwardDimension, ...attention } = options;
    const { modelDimension, device, dtype, generator } = attention;
    checkCount('TransformerBlock', 'feedForwardDimension', feedForwardDimension, 1);
    this.attn = new CausalSelfAttention(attention);
    this.ffn = new SwiGLU(modelDimension, feedForwardDimension, { device, dtype, generator });
    this.ln1 = new RMSNorm(modelDimension, { device, dtype });
    this.ln2 = new RMSNorm(modelDimension, { device, dtype });
  }

  protected override compute(x: Tensor, cache?: AttentionCache): Tensor {
    const attended = add(x, this.attn.forward(this.ln1.forward(x), cache));
    return add(attended, this.ffn.forward(this.ln2.forward(attended)));
  }
}
