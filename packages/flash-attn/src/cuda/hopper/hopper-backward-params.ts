import { KernelStruct } from '@roofline/cuda';
import type { HostMemory } from '@roofline/cuda/host';
import type { AttentionSizes } from '../../operands.ts';
import type { FlashCall } from '../flash-call.ts';
import type { HopperBackwardPlan } from './hopper-backward-plan.ts';

/** HopperBackwardParams of kernels/hopper/flash_hopper_backward.cuh. */
export const hopperBackwardStruct = new KernelStruct('HopperBackwardParams', {
  q: 'tensorMap',
  gradO: 'tensorMap',
  k: 'tensorMap',
  v: 'tensorMap',
  gradK: 'tensorMap',
  gradV: 'tensorMap',
  gradQMap: 'tensorMap',
  lse: 'pointer',
  gradLse: 'pointer',
  lseLog2: 'pointer',
  delta: 'pointer',
  sums: 'pointer',
  turns: 'pointer',
  o: 'pointer',
  gradORows: 'pointer',
  gradQ: 'pointer',
  oStrides: 'int64[3]',
  gradOStrides: 'int64[3]',
  gradQStrides: 'int64[3]',
  scaleLog2: 'float32',
  scale: 'float32',
  queries: 'int32',
  keys: 'int32',
  heads: 'int32',
  keyHeads: 'int32',
  keyHeadsTotal: 'int32',
  rowTiles: 'int32',
  keyTiles: 'int32',
  band: 'int32',
  columns: 'int32',
  unseenTiles: 'int32',
});

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
  const { int64, words, floats } = hopperBackwardStruct;
  memory.writeInt64(int64.lse, rows.lse);
  memory.writeInt64(int64.gradLse, rows.gradLse ?? 0);
  memory.writeInt64(int64.lseLog2, lseLog2);
  memory.writeInt64(int64.delta, delta);
  memory.writeInt64(int64.sums, sums);
  memory.writeInt64(int64.turns, turns ?? 0);
  memory.writeInt64(int64.o, o.address);
  memory.writeInt64(int64.gradORows, gradO.address);
  memory.writeInt64(int64.gradQ, gradQ.address);
  for (let i = 0; i < 3; i++) {
    memory.writeInt64(int64.oStrides + 8 * i, o.strides[i]!);
    memory.writeInt64(int64.gradOStrides + 8 * i, gradO.strides[i]!);
    memory.writeInt64(int64.gradQStrides + 8 * i, gradQ.strides[i]!);
  }
  memory.floats[floats.scaleLog2] = settings.scale * Math.LOG2E;
  memory.floats[floats.scale] = settings.scale;
  memory.words[words.queries] = queries;
  memory.words[words.keys] = keys;
  memory.words[words.heads] = heads;
  memory.words[words.keyHeads] = keyHeads;
  memory.words[words.keyHeadsTotal] = batch * keyHeads;
  memory.words[words.rowTiles] = rowTiles;
  memory.words[words.keyTiles] = keyTiles;
  memory.words[words.band] = plan.backwardBand;
  memory.words[words.columns] = headDimension;
  memory.words[words.unseenTiles] = unseenTiles;
}
