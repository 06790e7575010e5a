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
import type { HopperForwardTile, HopperPlan } from './hopper-plan.ts';

const source = packageKernels(import.meta.url)('flash_hopper_forward.cu');
const kernel = kernelVariants(source, 'flash_hopper_forward', 'T');
const rowsPerWarpgroup = 64;

// Offsets of kernels/flash_hopper_forward.cuh.
const byteLength = 576;
const maps = { q: 0, k: 128, v: 256, o: 384 } as const;
const [lseOffset, nextTileOffset, scaleLog2Offset, scaleOffset, sizesOffset] = [512, 520, 528, 532, 536];

let params: HostMemory | null = null;

/** Launches kernels/flash_hopper_forward.cu for operands that TMA can read. */
export function launchHopperForward(call: FlashCall, { forward, forwardBand }: HopperPlan): void {
  const { context, sizes } = call;
  const { batch, heads, queries } = sizes;
  const { warpgroups } = forward;
  const rowTiles = Math.ceil(queries / (rowsPerWarpgroup * warpgroups));
  const tiles = rowTiles * batch * heads;
  const sharedBytes = hopperForwardSharedBytes(forward, sizes.headDimension);
  const variant = kernel(hopperForwardDefines(call, forward));
  const blocks = Math.min(tiles, context.properties.multiprocessors * forward.blocksPerMultiprocessor);
  const bytes = writeParams(call, forward, [rowTiles, tiles, forwardBand]);
  context
    .kernel(announcing(variant, sharedBytes))
    .launch([blocks, 1, 1], 128 * (warpgroups + 1), sharedBytes, [bytes]);
}

/** The macros of flash_hopper_forward.cu. */
export function hopperForwardDefines(
  { dtype, sizes, settings }: Pick<FlashCall, 'dtype' | 'sizes' | 'settings'>,
  tile: HopperForwardTile,
): Record<string, string | number> {
  return {
    ELEMENT: storageType(dtype),
    HEAD_DIM: sizes.headDimension,
    CHUNK: tile.chunk,
    BLOCK_N: tile.keys,
    WARPGROUPS: tile.warpgroups,
    STAGES: tile.stages,
    BLOCKS_PER_SM: tile.blocksPerMultiprocessor,
    CAUSAL: settings.causal ? 1 : 0,
    Q_IN_REGISTERS: tile.queriesInRegisters ? 1 : 0,
    CONSUMER_REGISTERS: tile.consumerRegisters,
    PRODUCER_REGISTERS: tile.producerRegisters,
  };
}

/** As flash_hopper_forward.cu says. */
export function hopperForwardSharedBytes(
  { warpgroups, chunk, stages, keys }: HopperForwardTile,
  headDimension: number,
): number {
  const padded = Math.ceil(headDimension / chunk) * chunk;
  return 1024 + 256 * warpgroups * padded + 4 * stages * keys * padded + 512;
}

function writeParams(
  { context, sizes, settings, tensors, rows }: FlashCall,
  { chunk, keys: keysOfBlock }: HopperForwardTile,
  tiles: readonly [rowTiles: number, tiles: number, band: number],
): Uint8Array {
  const memory = (params ??= new HostMemory(byteLength));
  const device = cudaDevice(context);
  const { q, k, v, o } = tensors;
  const ofQueries = { rows: rowsPerWarpgroup, chunk, wholeRows: true };
  const ofKeys = { rows: keysOfBlock, chunk, wholeRows: true };
  device.encodeTensorMap(headTensorMap(q, ofQueries), memory, maps.q);
  device.encodeTensorMap(headTensorMap(k, ofKeys), memory, maps.k);
  device.encodeTensorMap(headTensorMap(v, ofKeys), memory, maps.v);
  device.encodeTensorMap(headTensorMap(o, { ...ofQueries, wholeRows: false }), memory, maps.o);
  memory.writeInt64(lseOffset, rows.lse);
  memory.writeInt64(nextTileOffset, device.scratch('flash_hopper_forward tiles', 4));
  memory.floats[scaleLog2Offset / 4] = settings.scale * Math.LOG2E;
  memory.floats[scaleOffset / 4] = settings.scale;
  const { batch, heads, keyHeads, queries, keys } = sizes;
  memory.words.set([queries, keys, heads, heads / keyHeads, batch * heads, ...tiles], sizesOffset / 4);
  return memory.bytes.subarray(0, byteLength);
}
