import type { StridedMemory } from '@roofline/tensor-core';
import { KernelStruct } from '@roofline/cuda';
import { HostMemory } from '@roofline/cuda/host';
import type { AttentionSizes } from '../operands.ts';
import type { AttentionSettings } from '../options.ts';

/** The tensors of a call; those that a kernel does not use are absent. All are [batch, heads, sequence, d]. */
export interface FlashTensors {
  readonly q: StridedMemory;
  readonly k: StridedMemory;
  readonly v: StridedMemory;
  readonly o: StridedMemory;
  readonly gradO?: StridedMemory;
  readonly gradQ?: StridedMemory;
  readonly gradK?: StridedMemory;
  readonly gradV?: StridedMemory;
}

/** Addresses of [batch, heads, queries] numbers each; null for an absent one. */
export interface FlashRows {
  readonly lse: number;
  readonly statistics: number | null;
  readonly gradLse?: number | null;
  readonly delta?: number | null;
}

/** FlashParams of kernels/flash_params.cuh. */
export const flashStruct = new KernelStruct('FlashParams', {
  q: 'pointer',
  k: 'pointer',
  v: 'pointer',
  o: 'pointer',
  lse: 'pointer',
  gradO: 'pointer',
  gradLse: 'pointer',
  delta: 'pointer',
  gradQ: 'pointer',
  gradK: 'pointer',
  gradV: 'pointer',
  qStrides: 'int64[3]',
  kStrides: 'int64[3]',
  vStrides: 'int64[3]',
  oStrides: 'int64[3]',
  gradOStrides: 'int64[3]',
  gradQStrides: 'int64[3]',
  gradKStrides: 'int64[3]',
  gradVStrides: 'int64[3]',
  statistics: 'pointer',
  batch: 'int32',
  heads: 'int32',
  keyHeads: 'int32',
  queries: 'int32',
  keys: 'int32',
  headDim: 'int32',
  scale: 'float64',
  causal: 'int32',
});

const { int64, words, doubles } = flashStruct;
const tensorNames = ['q', 'k', 'v', 'o', 'gradO', 'gradQ', 'gradK', 'gradV'] as const;
const tensorPlaces = tensorNames.map((name) => ({
  name,
  pointer: int64[name],
  strides: int64[`${name}Strides`],
}));

let memory: HostMemory | null = null;

/** The bytes of a FlashParams. They are the same array at each call, which a launch copies. */
export function flashParams(
  tensors: FlashTensors,
  { lse, statistics, gradLse, delta }: FlashRows,
  { batch, heads, keyHeads, queries, keys, headDimension }: AttentionSizes,
  { causal, scale }: AttentionSettings,
): Uint8Array {
  memory ??= new HostMemory(flashStruct.byteLength);
  for (const { name, pointer, strides } of tensorPlaces) {
    const tensor = tensors[name];
    memory.writeInt64(pointer, tensor?.address ?? 0);
    for (let i = 0; i < 3; i++) memory.writeInt64(strides + 8 * i, tensor?.strides[i] ?? 0);
  }
  memory.writeInt64(int64.lse, lse);
  memory.writeInt64(int64.statistics, statistics ?? 0);
  memory.writeInt64(int64.gradLse, gradLse ?? 0);
  memory.writeInt64(int64.delta, delta ?? 0);
  memory.words[words.batch] = batch;
  memory.words[words.heads] = heads;
  memory.words[words.keyHeads] = keyHeads;
  memory.words[words.queries] = queries;
  memory.words[words.keys] = keys;
  memory.words[words.headDim] = headDimension;
  memory.doubles[doubles.scale] = scale;
  memory.words[words.causal] = causal ? 1 : 0;
  return memory.bytes.subarray(0, flashStruct.byteLength);
}
