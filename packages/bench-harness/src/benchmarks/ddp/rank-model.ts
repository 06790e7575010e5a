import { type Device, type Tensor, zeros } from '@roofline/tensor-core';
import {
  DistributedDataParallel,
  Mesh,
  type ProcessGroup,
  ShardedOptimizer,
  allGather,
  allReduce,
  fullyShard,
  reduceScatter,
} from '@roofline/collectives';
import { AdamW } from '@roofline/optim';
import { TransformerLM, deferWeights } from '@roofline/transformer';
import { attentionFunction } from '../../attention/attention-function.ts';
import { policyOf } from '../../memory-saving/kinds.ts';
import { type DdpCell, type DdpSettings, isSharded } from './parameters.ts';

/** A model that ranks train together, and what each updates. */
export interface RankModel {
  readonly model: TransformerLM;
  readonly optimizer: { step(): void; zeroGrad(): void; dispose(): void };
  /** Bytes of the gradients that each call of a step reduces; of divided layers, of whatever each call moves. */
  readonly bucketBytes: readonly number[];
  /** Bytes of gradients that were copied into their buckets since the start. */
  readonly copiedBytes: number;
  /** Runs passes without communication; null where none can do without. */
  readonly alone: ((pass: () => void) => void) | null;
  /** This rank's part of sequences that it shares with others; null where it has its own. */
  readonly divideTokens: ((sequences: Tensor) => Tensor) | null;
  /** What comes before each pass. */
  beginPass(): void;
  dispose(): void;
  /** Memory for the communication of a step, and what does all of it with nothing alongside. */
  communication(): () => void;
}

/** The model of a cell, with parameters on each rank or split over them. A collective. */
export async function rankModelOf(
  cell: DdpCell,
  settings: DdpSettings,
  device: Device,
  group: ProcessGroup,
): Promise<RankModel> {
  const build = builderOf(cell, settings, device);
  return isSharded(cell.mode)
    ? await shardedModel(deferWeights(build), cell, device, group)
    : replicatedModel(build(), cell, settings, device, group);
}

/** Builds the model of a cell. */
export function builderOf(
  cell: DdpCell,
  { seed }: DdpSettings,
  device: Device,
  attention = attentionFunction(cell.attention),
): () => TransformerLM {
  const config = { ...cell.shape, contextLength: cell.context };
  return () =>
    new TransformerLM(config, {
      ...{ device, seed, recompute: policyOf(cell.recompute)! },
      attention,
    });
}

function replicatedModel(
  model: TransformerLM,
  { mode, optimizer }: DdpCell,
  { bucketBytes }: DdpSettings,
  device: Device,
  group: ProcessGroup,
): RankModel {
  if (isSharded(mode)) throw new Error(`no mode of replicas: ${mode}`);
  const parallel = new DistributedDataParallel(model, group, {
    mode,
    ...(bucketBytes !== null && { bucketBytes }),
  });
  const buckets = parallel.buckets.map(({ bytes }) => bytes);
  let passes = 0;
  const adamw =
    optimizer === 'whole'
      ? new AdamW(model.parameters())
      : new ShardedOptimizer(model.parameters(), AdamW, group);
  return {
    model,
    optimizer: adamw,
    dispose() {
      adamw.dispose();
      parallel.dispose();
      model.dispose();
    },
    bucketBytes: buckets,
    get copiedBytes() {
      return parallel.copiedBytes;
    },
    alone: (pass) => parallel.noSync(pass),
    divideTokens: null,
    beginPass: () => void (parallel.step = passes++),
    communication() {
      const gradients = buckets.map((bytes) => zeros([bytes / Float32Array.BYTES_PER_ELEMENT], { device }));
      return () => {
        const works = gradients.map((gradient) => group.allReduce(gradient, { op: 'average' }));
        for (const work of works) work.wait();
      };
    },
  };
}

async function shardedModel(
  model: TransformerLM,
  { mode, dtype, worldSize }: DdpCell,
  device: Device,
  group: ProcessGroup,
): Promise<RankModel> {
  const mesh = mode === 'hybrid' ? await Mesh.create(group, { replicate: 2, shard: worldSize / 2 }) : null;
  const sharded = fullyShard(model, mesh ?? group, { computeDtype: dtype });
  const units = sharded.units.map(({ elements }) => elements);
  const { shardGroup } = sharded;
  const average = { op: 'average' } as const;
  const optimizer = new AdamW(sharded.parameters());
  return {
    model,
    optimizer,
    dispose() {
      optimizer.dispose();
      sharded.dispose();
      mesh?.dispose();
    },
    bucketBytes: units.map((elements) => elements * Float32Array.BYTES_PER_ELEMENT),
    copiedBytes: 0,
    alone: null,
    divideTokens: null,
    beginPass() {},
    communication() {
      // One of each size: together they would take what the model takes.
      const ofSizes = (memory: (elements: number) => Tensor) =>
        new Map([...new Set(units)].map((elements) => [elements, memory(elements)]));
      const pieces = ofSizes((elements) => zeros([elements / shardGroup.size], { device, dtype }));
      const gradients = ofSizes((elements) => zeros([elements], { device }));
      const replicas = mesh?.along('replicate');
      return () => {
        for (const _ of ['forward', 'backward'])
          for (const elements of units) waitFor(allGather(pieces.get(elements)!, shardGroup));
        for (const elements of units) {
          const part = reduceScatter(gradients.get(elements)!, shardGroup, average);
          if (replicas) waitFor(allReduce(part, replicas, average));
          waitFor(part);
        }
      };
    },
  };
}

/** Waits for what a collective writes, and frees it. */
export function waitFor(result: Tensor): void {
  void result.address;
  result.dispose();
}
