import type { CollectiveOp } from '../benchmarks/allreduce/operations.ts';
import type { Axis, Layout } from './layout.ts';
import { elementBytes, FLOAT32_BYTES, parameterUnits, type StepSetting } from './setting.ts';

/** DistributedDataParallel's buckets. */
const BUCKET_BYTES = 25 * 2 ** 20;

/** Calls of one kind in a step. */
export interface Traffic {
  readonly what: 'gradients' | 'parameters' | 'activations';
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
  const traffic = [
    ...shardTraffic(layout, setting),
    ...replicaTraffic(layout, setting, reduction),
    ...tensorTraffic(layout, setting),
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
  const { calls, hides } = reduction ?? { calls: Math.ceil(bytes / BUCKET_BYTES), hides: true };
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
 * Of tensor parallel layers whose norms work on parts of the sequence: before attention and the feed-forward network
 * activations are gathered, after them reduced and scattered; backward the other way round, and what was gathered is gathered
 * once more (Korthikanti et al. 2022). The embedding and the head add as much as half a layer. Layers made again repeat forward's.
 */
function tensorTraffic(layout: Layout, { shape, context, batch, dtype, recompute }: StepSetting): Traffic[] {
  const tokens = batch * context * layout.tensor;
  const bytes = tokens * shape.modelDimension * elementBytes(dtype);
  const halves = 2 * shape.layers + 1;
  const again = recompute === 'none' ? 0 : 2 * shape.layers;
  const calls = (op: CollectiveOp, phase: Traffic['phase'], calls: number): Traffic => ({
    ...{ what: 'activations', op, axis: 'tensor', bytes, calls, phase, hides: false },
  });
  return [
    calls('allgather', 'forward', halves),
    calls('reducescatter', 'forward', halves),
    calls('allgather', 'backward', 2 * halves + again),
    calls('reducescatter', 'backward', halves + again),
  ];
}
