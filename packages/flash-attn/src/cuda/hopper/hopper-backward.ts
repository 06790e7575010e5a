import type { KernelSpec } from '@roofline/tensor-core';
import { type CudaDevice, cudaDevice, storageType } from '@roofline/tensor-core/kernel-api';
import { HostMemory } from '@roofline/cuda/host';
import { kernelVariants, packageKernels } from '@roofline/cuda';
import { announcing } from '../announced-kernel.ts';
import type { FlashCall } from '../flash-call.ts';
import { headTensorMap } from './head-tensor-map.ts';
import {
  type BackwardTensors,
  type HopperBackwardScratch,
  hopperBackwardStruct,
  hopperBackwardTiles,
  writeHopperBackwardParams,
} from './hopper-backward-params.ts';
import type { HopperBackwardPlan, HopperBackwardTile } from './hopper-backward-plan.ts';

const kernels = packageKernels(import.meta.url);
const mainKernel = kernelVariants(kernels('hopper/flash_hopper_backward.cu'), 'flash_hopper_backward', {
  p: 'struct',
});
const rowsSource = kernels('hopper/flash_hopper_backward_rows.cu');
const beforeKernel = kernelVariants(rowsSource, 'flash_hopper_before', { p: 'struct' });
const afterKernel = kernelVariants(rowsSource, 'flash_hopper_after', { p: 'struct' });

const mainThreads = 384;
const rowsThreads = 256;
const keysOfBlock = 128;
const wordBytes = 4;

let params: HostMemory | null = null;

/**
 * Launches kernels/hopper/flash_hopper_backward.cu, and what goes before and after it, for operands that TMA can read.
 * The sums of gradQ take `queries · d` float32 of workspace for each head, with both rounded up to tiles.
 */
export function launchHopperBackward(call: FlashCall, plan: HopperBackwardPlan): void {
  const { context, sizes, settings } = call;
  const { backward } = plan;
  const heads = sizes.batch * sizes.heads;
  const { rowTiles, keyTiles } = hopperBackwardTiles(sizes, settings.causal, plan);
  const bytes = writeParams(call, plan, rowTiles);
  const rowsOfBlock = rowsThreads / (backward.headDimension > 80 ? 16 : 8);
  const rowBlocks = (rowTiles * backward.queries) / rowsOfBlock;
  const values = mainKernel.byName({ p: bytes });
  context.kernel(beforeSpec(call, backward)).launch([rowBlocks, heads, 1], rowsThreads, 0, values);
  const sharedBytes = hopperBackwardSharedBytes(backward);
  const blocks = keyTiles * sizes.keyHeads * sizes.batch;
  context.kernel(mainSpec(call, backward)).launch([blocks, 1, 1], mainThreads, sharedBytes, values);
  if (!needsAfter(backward)) return;
  context.kernel(afterSpec(call, backward)).launch([rowTiles, heads, 1], rowsThreads, 0, values);
}

/** What `launchHopperBackward` launches. */
export function hopperBackwardKernels(call: VariantCall, { backward }: HopperBackwardPlan): KernelSpec[] {
  const always = [beforeSpec(call, backward), mainSpec(call, backward)];
  return needsAfter(backward) ? [...always, afterSpec(call, backward)] : always;
}

type VariantCall = Pick<FlashCall, 'dtype' | 'sizes' | 'settings'>;

function beforeSpec(call: VariantCall, tile: HopperBackwardTile): KernelSpec {
  return beforeKernel(hopperBackwardRowsDefines(call, tile));
}

function mainSpec(call: VariantCall, tile: HopperBackwardTile): KernelSpec {
  return announcing(mainKernel(hopperBackwardDefines(call, tile)), hopperBackwardSharedBytes(tile));
}

function afterSpec(call: VariantCall, tile: HopperBackwardTile): KernelSpec {
  return afterKernel(hopperBackwardRowsDefines(call, tile));
}

/** Sums in order are written as gradQ at once. */
function needsAfter({ sumBuffers }: HopperBackwardTile): boolean {
  return sumBuffers === 0;
}

/** The macros of flash_hopper_backward_rows.cu. */
export function hopperBackwardRowsDefines(
  { dtype, sizes }: Pick<FlashCall, 'dtype' | 'sizes'>,
  { headDimension, chunk, queries, sumBuffers }: HopperBackwardTile,
): Record<string, string | number> {
  return {
    ELEMENT: storageType(dtype),
    HEAD_DIM: headDimension,
    CHUNK: chunk,
    NARROW_PADDED: chunk === 16 && sizes.headDimension < headDimension ? 1 : 0,
    BLOCK_M: queries,
    SUM_BUFFERS: sumBuffers,
  };
}

/** The macros of flash_hopper_backward.cu. */
export function hopperBackwardDefines(
  call: VariantCall,
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
export function hopperBackwardSharedBytes({
  headDimension,
  queries,
  chunk,
  stages,
  sumBuffers,
}: HopperBackwardTile): number {
  const padded = Math.ceil(headDimension / chunk) * chunk;
  const tiles = 512 * padded + 4 * stages * queries * padded;
  const sums = wordBytes * sumBuffers * queries * headDimension;
  return tiles + 512 * queries + sums + 8 * stages * queries + 256;
}

function writeParams(call: FlashCall, plan: HopperBackwardPlan, rowTiles: number): Uint8Array {
  const memory = (params ??= new HostMemory(hopperBackwardStruct.byteLength));
  encodeMaps(cudaDevice(call.context), memory, call.tensors as BackwardTensors, plan.backward);
  writeHopperBackwardParams(memory, call, scratchOf(call, plan, rowTiles), plan);
  return memory.bytes.subarray(0, hopperBackwardStruct.byteLength);
}

function scratchOf(
  { context, sizes }: FlashCall,
  { backward }: HopperBackwardPlan,
  rowTiles: number,
): HopperBackwardScratch {
  const tiles = sizes.batch * sizes.heads * rowTiles;
  const rowsBytes = tiles * backward.queries * wordBytes;
  return {
    lseLog2: context.workspace(rowsBytes),
    delta: context.workspace(rowsBytes),
    sums: context.workspace(rowsBytes * backward.headDimension),
    turns: backward.sumBuffers > 0 ? context.workspace((1 + tiles) * wordBytes) : null,
  };
}

function encodeMaps(
  device: CudaDevice,
  memory: HostMemory,
  tensors: BackwardTensors,
  { queries, chunk }: HopperBackwardTile,
): void {
  const ofQueries = { rows: queries, chunk, wholeRows: true };
  const ofKeys = { rows: keysOfBlock, chunk, wholeRows: true };
  const stored = { rows: 64, chunk, wholeRows: false };
  const boxes = {
    ...{ q: ofQueries, gradO: ofQueries, k: ofKeys, v: ofKeys },
    ...{ gradK: stored, gradV: stored, gradQ: stored },
  };
  const { tensorMaps } = hopperBackwardStruct;
  for (const name of Object.keys(boxes) as (keyof typeof boxes)[]) {
    const offset = tensorMaps[name === 'gradQ' ? 'gradQMap' : name];
    device.encodeTensorMap(headTensorMap(tensors[name], boxes[name]), memory, offset);
  }
}
