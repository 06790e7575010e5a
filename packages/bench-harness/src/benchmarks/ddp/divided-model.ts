import type { Device } from '@roofline/tensor-core';
import { Mesh, type ProcessGroup, fullyShard, parallelize } from '@roofline/collectives';
import { AdamW } from '@roofline/optim';
import { deferWeights } from '@roofline/transformer';
import { FirstPass } from './first-pass.ts';
import { type DdpCell, type DdpSettings, tensorRanksOf } from './parameters.ts';
import { type RankModel, builderOf } from './rank-model.ts';

/** A model whose layers are divided over ranks and, in the mode `fsdp-tensor`, sharded over the others. A collective. */
export async function dividedModelOf(
  cell: DdpCell,
  settings: DdpSettings,
  device: Device,
  group: ProcessGroup,
): Promise<RankModel> {
  const tensor = tensorRanksOf(cell);
  const mesh = await Mesh.create(group, { shard: cell.worldSize / tensor, tensor });
  const model = deferWeights(builderOf(cell, settings, device));
  const divided = parallelize(model, mesh);
  const isSharded = cell.mode === 'fsdp-tensor';
  const sharded = isSharded && fullyShard(model, mesh, { computeDtype: cell.dtype });
  const calls = new FirstPass(device);
  const optimizer = new AdamW((sharded || divided).parameters());
  return {
    model,
    optimizer,
    dispose() {
      optimizer.dispose();
      if (sharded) sharded.dispose();
      divided.dispose();
      mesh.dispose();
    },
    get bucketBytes() {
      return calls.bytes;
    },
    copiedBytes: 0,
    alone: null,
    beginPass: () => calls.beginPass(),
    divideTokens: null,
    communication: () => calls.communication(),
  };
}
