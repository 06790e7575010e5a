import type { StridedMemory } from '@roofline/tensor-core';
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

const byteLength = 328;

// Offsets of kernels/flash_params.cuh.
const pointers = { q: 0, k: 8, v: 16, o: 24, gradO: 40, gradQ: 64, gradK: 72, gradV: 80 } as const;
const strides = { q: 88, k: 112, v: 136, o: 160, gradO: 184, gradQ: 208, gradK: 232, gradV: 256 } as const;
const [lseOffset, gradLseOffset, deltaOffset, statisticsOffset] = [32, 48, 56, 280];
const [sizesOffset, scaleOffset, causalOffset] = [288, 312, 320];
const names = Object.keys(pointers) as (keyof typeof pointers)[];

const bytes = new Uint8Array(byteLength);
const view = new DataView(bytes.buffer);

/** The bytes of a FlashParams. They are the same array at each call, which a launch copies. */
export function flashParams(
  tensors: FlashTensors,
  { lse, statistics, gradLse, delta }: FlashRows,
  { batch, heads, keyHeads, queries, keys, headDimension }: AttentionSizes,
  { causal, scale }: AttentionSettings,
): Uint8Array {
  for (const name of names) {
    const tensor = tensors[name];
    writeInt64(pointers[name], tensor?.address ?? 0);
    for (let i = 0; i < 3; i++) writeInt64(strides[name] + 8 * i, tensor?.strides[i] ?? 0);
  }
  writeInt64(lseOffset, lse);
  writeInt64(statisticsOffset, statistics ?? 0);
  writeInt64(gradLseOffset, gradLse ?? 0);
  writeInt64(deltaOffset, delta ?? 0);
  view.setInt32(sizesOffset, batch, true);
  view.setInt32(sizesOffset + 4, heads, true);
  view.setInt32(sizesOffset + 8, keyHeads, true);
  view.setInt32(sizesOffset + 12, queries, true);
  view.setInt32(sizesOffset + 16, keys, true);
  view.setInt32(sizesOffset + 20, headDimension, true);
  view.setFloat64(scaleOffset, scale, true);
  view.setInt32(causalOffset, causal ? 1 : 0, true);
  return bytes;
}

/** Exact below 2^53, as addresses are. */
function writeInt64(offset: number, value: number): void {
  view.setUint32(offset, value % 2 ** 32, true);
  view.setInt32(offset + 4, Math.floor(value / 2 ** 32), true);
}
