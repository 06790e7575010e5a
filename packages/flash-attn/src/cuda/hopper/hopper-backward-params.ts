import type { StridedMemory } from '@roofline/tensor-core';
import type { HostMemory } from '@roofline/cuda/host';
import type { AttentionSizes } from '../../operands.ts';
import type { FlashCall } from '../flash-call.ts';
import type { HopperBackwardPlan } from './hopper-backward-plan.ts';

// As kernels/hopper/flash_hopper_backward.cuh has it.
export const hopperBackwardParamsBytes = 1088;
/** Where the tensor maps lie among them. */
export const hopperBackwardMaps = {
  q: 0,
  gradO: 128,
  k: 256,
  v: 384,
  gradK: 512,
  gradV: 640,
  gradQ: 768,
} as const;
const pointersOffset = 896;
const stridesOffset = 968;
const [scaleLog2Offset, scaleOffset, sizesOffset] = [1040, 1044, 1048];

const keysOfBlock = 128;

/** The tensors of a backward pass, all of which exist. */
export type BackwardTensors = Required<FlashCall['tensors']>;

/** Addresses of memory for one backward pass; `turns` only where gradQ is summed in order. */
export interface HopperBackwardScratch {
  readonly lseLog2: number;
  readonly delta: number;
  readonly sums: number;
  readonly turns: number | null;
}

/** How many tiles there are of queries and of keys, and how many of queries, from the first on, see no key. */
export interface HopperBackwardTiles {
  readonly rowTiles: number;
  readonly keyTiles: number;
  readonly unseenTiles: number;
}

export function hopperBackwardTiles(
  { queries, keys }: AttentionSizes,
  causal: boolean,
  { backward }: HopperBackwardPlan,
): HopperBackwardTiles {
  const unseen = causal ? Math.max(0, queries - keys) : 0;
  return {
    rowTiles: Math.ceil(queries / backward.queries),
    keyTiles: Math.ceil(keys / keysOfBlock),
    unseenTiles: Math.floor(unseen / backward.queries),
  };
}

/** Writes a HopperBackwardParams without its tensor maps. */
export function writeHopperBackwardParams(
  memory: HostMemory,
  { sizes, settings, tensors, rows }: Pick<FlashCall, 'sizes' | 'settings' | 'tensors' | 'rows'>,
  { lseLog2, delta, sums, turns }: HopperBackwardScratch,
  plan: HopperBackwardPlan,
): void {
  const { o, gradO, gradQ } = tensors as BackwardTensors;
  const { batch, heads, keyHeads, queries, keys, headDimension } = sizes;
  const { rowTiles, keyTiles, unseenTiles } = hopperBackwardTiles(sizes, settings.causal, plan);
  const pointers = [
    ...[rows.lse, rows.gradLse ?? 0, lseLog2, delta, sums, turns ?? 0],
    ...[o.address, gradO.address, gradQ.address],
  ];
  pointers.forEach((pointer, i) => memory.writeInt64(pointersOffset + 8 * i, pointer));
  const strides = [o, gradO, gradQ].flatMap((x: StridedMemory) => x.strides.slice(0, 3));
  strides.forEach((stride, i) => memory.writeInt64(stridesOffset + 8 * i, stride));
  memory.floats[scaleLog2Offset / 4] = settings.scale * Math.LOG2E;
  memory.floats[scaleOffset / 4] = settings.scale;
  const words = [
    ...[queries, keys, heads, keyHeads, batch * keyHeads, rowTiles, keyTiles, plan.backwardBand],
    ...[headDimension, unseenTiles],
  ];
  memory.words.set(words, sizesOffset / 4);
}
