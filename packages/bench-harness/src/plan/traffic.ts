import { defaultBucketBytes } from '@roofline/collectives';
import type { CollectiveOp } from '../benchmarks/allreduce/operations.ts';
import type { Axis, Layout } from './layout.ts';
import {
  elementBytes,
  FLOAT32_BYTES,
  layerWidths,
  parameterUnits,
  type StepSetting,
  withCopies,
} from './setting.ts';

/** Calls of one kind in a step. */
export interface Traffic {
  readonly what: 'gradients' | 'parameters' | 'activations' | 'keys and values';
  readonly op: CollectiveOp;
  readonly axis: Axis;
  /** Of one call, as nccl-tests counts them. */
  readonly bytes: number;
  readonly calls: number;
  readonly phase: 'forward' | 'backward' | 'optimizer';
  /** Whether computation may go on meanwhile. */
  readonly hides: boolean;
}

/** How gradients of replicas are reduced, if not in DistributedDataParallel's buckets alongside the backward pass. */
export interface Reduction {
  readonly calls: number;
  readonly hides: boolean;
}

/** What the ranks of a layout send one another in a step. */
export function trafficOf(layout: Layout, setting: StepSetting, reduction?: Reduction): Traffic[] {
  const ofRanks = withCopies(setting, layout.tensor);
  const traffic = [
    ...shardTraffic(layout, ofRanks),
    ...replicaTraffic(layout, ofRanks, reduction),
    ...tensorTraffic(layout, setting),
    ...copiesTraffic(layout, setting),
    ...ringTraffic(layout, setting),
  ];
  return traffic.filter(({ axis }) => layout[axis] > 1);
}

/** Parameters are gathered in the dtype of the products for forward and again for backward, gradients reduced in float32. */
function shardTraffic({ tensor }: Layout, { shape, context, dtype }: StepSetting): Traffic[] {
  const { embedding, layer, layers, head } = parameterUnits({ shape, context });
  const units = [
    { size: layer, calls: layers },
    { size: (embedding + head) / 2, calls: 2 },
  ];
  return units.flatMap(({ size, calls }): Traffic[] => {
    const held = size / tensor;
    const shared = { axis: 'shard', calls, hides: true } as const;
    const gather = {
      ...shared,
      what: 'parameters',
      op: 'allgather',
      bytes: elementBytes(dtype) * held,
    } as const;
    return [
      { ...gather, phase: 'forward' },
      { ...gather, phase: 'backward' },
      { ...shared, what: 'gradients', op: 'reducescatter', bytes: FLOAT32_BYTES * held, phase: 'backward' },
    ];
  });
}

/** Each replica has its part of the gradients reduced; with ZeRO-1 each parameter then comes from the rank that updated it. */
function replicaTraffic(layout: Layout, setting: StepSetting, reduction?: Reduction): Traffic[] {
  const { total } = parameterUnits(setting);
  const bytes = (FLOAT32_BYTES * total) / (layout.tensor * layout.shard);
  const { calls, hides } = reduction ?? {
    calls: Math.ceil(bytes / defaultBucketBytes(Math.ceil(bytes))),
    hides: true,
  };
  const gradients: Traffic = {
    ...{ what: 'gradients', op: 'allreduce', axis: 'replicate', bytes: bytes / calls, calls },
    ...{ phase: 'backward', hides },
  };
  // One parameter after the other, none of which waits for the one before.
  const parameters: Traffic = {
    ...{ what: 'parameters', op: 'broadcast', axis: 'replicate', bytes, calls: 1 },
    ...{ phase: 'optimizer', hides: false },
  };
  return layout.shardsMoments ? [gradients, parameters] : [gradients];
}

/**
 * Of tensor parallel layers whose norms work on parts of the tokens: before attention and the feed-forward network activations are
 * gathered, after them reduced and scattered; backward the other way round (Korthikanti et al. 2022; what was gathered is kept, not
 * gathered once more). The embedding and the head add as much as half a layer, the embedding in float32. Layers made again repeat
 * forward's. The loss reduces the largest logit, their sum and the target's of each token, and norms sum their gradients.
 */
function tensorTraffic(layout: Layout, { shape, context, batch, dtype, recompute }: StepSetting): Traffic[] {
  const tokens = batch * context * layout.tensor;
  const { layers, modelDimension: d } = shape;
  const activations = tokens * d * elementBytes(dtype);
  const embedded = tokens * d * FLOAT32_BYTES;
  const [inLayers, again] = [2 * layers, recompute === 'none' ? 0 : 2 * layers];
  const calls = (op: CollectiveOp, phase: Traffic['phase'], calls: number, bytes = activations): Traffic => ({
    ...{ what: 'activations', op, axis: 'tensor', bytes, calls, phase, hides: false },
  });
  const ofNorms = { ...calls('allreduce', 'backward', inLayers + 1, d * FLOAT32_BYTES), hides: true };
  return [
    calls('reducescatter', 'forward', 1, embedded),
    calls('allgather', 'forward', inLayers + 1),
    calls('reducescatter', 'forward', inLayers),
    calls('allreduce', 'forward', 1, tokens * FLOAT32_BYTES),
    calls('allreduce', 'forward', 1, 2 * tokens * FLOAT32_BYTES),
    calls('allgather', 'backward', inLayers + again),
    calls('reducescatter', 'backward', inLayers + 1 + again),
    calls('allgather', 'backward', 1, embedded),
    { ...ofNorms, what: 'gradients' },
  ];
}

/** Where several ranks have a head of keys and values alike, the gradients of all heads are summed, those of each parameter at once. */
function copiesTraffic({ tensor, shard }: Layout, setting: StepSetting): Traffic[] {
  const { shape, dtype } = setting;
  if (withCopies(setting, tensor) === setting) return [];
  const { ofKeys } = layerWidths(shape);
  // Sharded parameters are in the dtype of the products, and so are their gradients until they are reduced.
  const bytes = shard > 1 ? elementBytes(dtype) : FLOAT32_BYTES;
  return ofKeys.map((size) => ({
    ...{ what: 'gradients', op: 'allreduce', axis: 'tensor', bytes: bytes * size, calls: shape.layers },
    ...{ phase: 'backward', hides: true },
  }));
}

/**
 * Of n ranks that share sequences each passes on keys and values n - 1 times, while it attends to those that it has; so it does in the
 * backward pass, and once more where attention is made again. Their gradients, in float32, follow n times, the last time to where they
 * belong, with no attention left. The loss's count of its targets, a single number, is left out.
 */
function ringTraffic({ context: ranks }: Layout, setting: StepSetting): Traffic[] {
  const { shape, context, batch, dtype, recompute } = setting;
  const { layers } = shape;
  const numbers = 2 * batch * context * layerWidths(shape).keys;
  const shared = { axis: 'context', what: 'keys and values', op: 'sendrecv', hides: true } as const;
  const keys = { ...shared, bytes: numbers * elementBytes(dtype) };
  const gradients = { ...shared, bytes: numbers * FLOAT32_BYTES, phase: 'backward' } as const;
  const passes = layers * (ranks - 1);
  return [
    { ...keys, phase: 'forward', calls: passes },
    { ...keys, phase: 'backward', calls: (recompute === 'block' ? 2 : 1) * passes },
    { ...gradients, what: 'gradients', calls: passes },
    { ...gradients, what: 'gradients', calls: layers, hides: false },
  ];
}
