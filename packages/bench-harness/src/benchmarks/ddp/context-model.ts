import type { Device } from '@roofline/tensor-core';
import { type ProcessGroup, contextParallel, fullyShard } from '@roofline/collectives';
import { flashAttentionParts } from '@roofline/flash-attn';
import { AdamW } from '@roofline/optim';
import { deferWeights } from '@roofline/transformer';
import { FirstPass } from './first-pass.ts';
import type { DdpCell, DdpSettings } from './parameters.ts';
import { type RankModel, builderOf } from './rank-model.ts';

/** A model whose parameters and whose sequences are divided over the same ranks. A collective. */
export function contextModelOf(
  cell: DdpCell,
  settings: DdpSettings,
  device: Device,
  group: ProcessGroup,
): RankModel {
  const context = contextParallel(group, cell.attention === 'flash' ? { parts: flashAttentionParts } : {});
  const model = deferWeights(builderOf(cell, settings, device, context.attention));
  context.divide(model);
  const sharded = fullyShard(model, group, { computeDtype: cell.dtype });
  const calls = new FirstPass(device);
  const optimizer = new AdamW(sharded.parameters());
  return {
    model,
    optimizer,
    dispose() {
      optimizer.dispose();
      sharded.dispose();
    },
    get bucketBytes() {
      return calls.bytes;
    },
    copiedBytes: 0,
    alone: null,
    beginPass: () => calls.beginPass(),
    divideTokens: (sequences) => context.shardOf(sequences),
    communication: () => calls.communication(),
  };
}
