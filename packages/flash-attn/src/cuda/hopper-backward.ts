import type { StridedMemory } from '@roofline/tensor-core';
import {
  HostMemory,
  cudaDevice,
  kernelVariants,
  packageKernels,
  storageType,
} from '@roofline/tensor-core/native';
import { announcing } from './announced-kernel.ts';
import type { FlashCall } from './flash-call.ts';
import { headTensorMap } from './head-tensor-map.ts';
import type { HopperBackwardTile, HopperPlan } from './hopper-plan.ts';

const kernels = packageKernels(import.meta.url);
const mainKernel = kernelVariants(kernels('flash_hopper_backward.cu'), 'flash_hopper_backward', 'T');
const rowsSource = kernels('flash_hopper_backward_rows.cu');
const beforeKernel = kernelVariants(rowsSource, 'flash_hopper_before', 'T');
const afterKernel = kernelVariants(rowsSource, 'flash_hopper_after', 'T');

const keysOfBlock = 128;
const mainThreads = 384;
const rowsThreads = 256;
const float32Bytes = 4;

// Offsets of kernels/flash_hopper_backward.cuh.
const byteLength = 960;
const maps = { q: 0, gradO: 128, k: 256, v: 384, gradK: 512, gradV: 640 } as const;
const pointersOffset = 768;
const stridesOffset = 832;
const [scaleLog2Offset, scaleOffset, sizesOffset] = [904, 908, 912];

let params: HostMemory | null = null;

/** The tensors of a backward pass, all of which exist. */
type BackwardTensors = Required<FlashCall['tensors']>;

/**
 * Launches kernels/flash_hopper_backward.cu, and what goes before and behind it, for operands that TMA can read.
 * The sums of gradQ take `queries · d` float32 of workspace for each head.
 */
export function launchHopperBackward(call: FlashCall, { backward, backwardBand }: HopperPlan): void {
  const { context, sizes } = call;
  const { batch, heads, keyHeads, queries, keys, headDimension } = sizes;
  const rowTiles = Math.ceil(queries / backward.queries);
  const keyTiles = Math.ceil(keys / keysOfBlock);
  const bytes = writeParams(call, backward, [rowTiles, keyTiles, backwardBand]);
  const ofRows = hopperBackwardRowsDefines(call, backward);
  const rowsPerBlock = rowsThreads / (headDimension === 128 ? 16 : 8);
  const rowBlocks = (rowTiles * backward.queries) / rowsPerBlock;
  context.kernel(beforeKernel(ofRows)).launch([rowBlocks, batch * heads, 1], rowsThreads, 0, [bytes]);
  const variant = mainKernel(hopperBackwardDefines(call, backward));
  const sharedBytes = hopperBackwardSharedBytes(backward, headDimension);
  const blocks = keyTiles * keyHeads * batch;
  context.kernel(announcing(variant, sharedBytes)).launch([blocks, 1, 1], mainThreads, sharedBytes, [bytes]);
  context.kernel(afterKernel(ofRows)).launch([rowTiles, batch * heads, 1], rowsThreads, 0, [bytes]);
}

/** The macros of flash_hopper_backward_rows.cu. */
export function hopperBackwardRowsDefines(
  { dtype, sizes }: Pick<FlashCall, 'dtype' | 'sizes'>,
  { chunk, queries }: HopperBackwardTile,
): Record<string, string | number> {
  return {
    ELEMENT: storageType(dtype),
    HEAD_DIM: sizes.headDimension,
    CHUNK: chunk,
    BLOCK_M: queries,
  };
}

/** The macros of flash_hopper_backward.cu. */
export function hopperBackwardDefines(
  call: Pick<FlashCall, 'dtype' | 'sizes' | 'settings'>,
  tile: HopperBackwardTile,
): Record<string, string | number> {
  return {
    ...hopperBackwardRowsDefines(call, tile),
    STAGES: tile.stages,
    CAUSAL: call.settings.causal ? 1 : 0,
    CONSUMER_REGISTERS: tile.consumerRegisters,
    PRODUCER_REGISTERS: tile.producerRegisters,
  };
}

/** As flash_hopper_backward.cu says. */
export function hopperBackwardSharedBytes(
  { queries, chunk, stages }: HopperBackwardTile,
  headDimension: number,
): number {
  const padded = Math.ceil(headDimension / chunk) * chunk;
  const tiles = 512 * padded + 4 * stages * queries * padded;
  return 1024 + tiles + 512 * queries + 8 * stages * queries + 256;
}

function writeParams(
  { context, sizes, settings, tensors, rows }: FlashCall,
  tile: HopperBackwardTile,
  [rowTiles, keyTiles, band]: readonly [rowTiles: number, keyTiles: number, band: number],
): Uint8Array {
  const memory = (params ??= new HostMemory(byteLength));
  const all = tensors as BackwardTensors;
  const { batch, heads, keyHeads, queries, keys, headDimension } = sizes;
  encodeMaps(cudaDevice(context), memory, all, tile);
  const paddedBytes = batch * heads * rowTiles * tile.queries * float32Bytes;
  const pointers = [
    ...[rows.lse, rows.gradLse ?? 0],
    ...[paddedBytes, paddedBytes, paddedBytes * headDimension].map((size) => context.workspace(size)),
    ...[all.o.address, all.gradO.address, all.gradQ.address],
  ];
  pointers.forEach((pointer, i) => memory.writeInt64(pointersOffset + 8 * i, pointer));
  const strides = [all.o, all.gradO, all.gradQ].flatMap((x: StridedMemory) => x.strides.slice(0, 3));
  strides.forEach((stride, i) => memory.writeInt64(stridesOffset + 8 * i, stride));
  memory.floats[scaleLog2Offset / 4] = settings.scale * Math.LOG2E;
  memory.floats[scaleOffset / 4] = settings.scale;
  const words = [queries, keys, heads, keyHeads, batch * keyHeads, rowTiles, keyTiles, band];
  memory.words.set(words, sizesOffset / 4);
  return memory.bytes.subarray(0, byteLength);
}

function encodeMaps(
  device: ReturnType<typeof cudaDevice>,
  memory: HostMemory,
  { q, gradO, k, v, gradK, gradV }: BackwardTensors,
  { queries, chunk }: HopperBackwardTile,
): void {
  const ofQueries = { rows: queries, chunk, wholeRows: true };
  const ofKeys = { rows: keysOfBlock, chunk, wholeRows: true };
  const stored = { rows: 64, chunk, wholeRows: false };
  device.encodeTensorMap(headTensorMap(q, ofQueries), memory, maps.q);
  device.encodeTensorMap(headTensorMap(gradO, ofQueries), memory, maps.gradO);
  device.encodeTensorMap(headTensorMap(k, ofKeys), memory, maps.k);
  device.encodeTensorMap(headTensorMap(v, ofKeys), memory, maps.v);
  device.encodeTensorMap(headTensorMap(gradK, stored), memory, maps.gradK);
  device.encodeTensorMap(headTensorMap(gradV, stored), memory, maps.gradV);
}
