import { type Tensor, zeros } from '@roofline/tensor-core';
import { AdamW } from '@roofline/optim';
import { TransformerLM, languageModelLoss } from '@roofline/transformer';
import { type ProcessGroup, fullyShard } from '@roofline/collectives';

/** A training step of a model of blocks of about so many parameters, which are split over the ranks. */
export function shardedStep(group: ProcessGroup, elements: number): () => Tensor {
  const device = group.device ?? 'cpu';
  const modelDimension = 16 * Math.max(1, Math.round(Math.sqrt(elements / 10) / 16));
  const config = { vocabularySize: 64, contextLength: 8, modelDimension, heads: 2, layers: 3 };
  const model = new TransformerLM(
    { ...config, feedForwardDimension: 2 * modelDimension },
    { device, seed: 1, recompute: 'block' },
  );
  const sharded = fullyShard(model, group);
  const optimizer = new AdamW(sharded.parameters());
  const tokens = zeros([1, 8], { dtype: 'int64', device });
  return () => {
    const loss = languageModelLoss(model, tokens, tokens);
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    return loss.detach();
  };
}
