import { type Tensor, add } from '@roofline/tensor-core';
import { type AttentionOptions, CausalSelfAttention } from './attention.ts';
import type { LayerCache } from './key-value-cache.ts';
import { Module } from './module.ts';
import { RMSNorm } from './rms-norm.ts';
import { SwiGLU } from './swiglu.ts';

export interface BlockOptions extends AttentionOptions {
  readonly feedForwardDimension: number;
}

/** A pre-norm layer: x + attention(norm(x)), then the same with the feed-forward network. [B, T, d] -> [B, T, d]. */
export class TransformerBlock extends Module<[x: Tensor, cache?: LayerCache], Tensor> {
  readonly attn: CausalSelfAttention;
  readonly ffn: SwiGLU;
  readonly ln1: RMSNorm;
  readonly ln2: RMSNorm;

  constructor(options: BlockOptions) {
    super();
    const { modelDimension, feedForwardDimension } = options;
    this.attn = new CausalSelfAttention(options);
    this.ffn = new SwiGLU(modelDimension, feedForwardDimension, options);
    this.ln1 = new RMSNorm(modelDimension, options);
    this.ln2 = new RMSNorm(modelDimension, options);
  }

  protected override compute(x: Tensor, cache?: LayerCache): Tensor {
    const attended = add(x, this.attn.forward(this.ln1.forward(x), cache));
    return add(attended, this.ffn.forward(this.ln2.forward(attended)));
  }
}
