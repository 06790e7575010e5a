import type { KernelSpec } from '@roofline/tensor-core';
import { type CudaDevice, cudaDevice, storageType } from '@roofline/tensor-core/kernel-api';
import { HostMemory } from '@roofline/cuda/host';
import { KernelStruct, kernelVariants, packageKernels } from '@roofline/cuda';
import { announcing } from '../announced-kernel.ts';
import type { FlashCall } from '../flash-call.ts';
import { headTensorMap } from './head-tensor-map.ts';
import type { HopperForwardPlan, HopperForwardTile } from './hopper-forward-plan.ts';

const source = packageKernels(import.meta.url)('hopper/flash_hopper_forward.cu');
const kernel = kernelVariants(source, 'flash_hopper_forward', { p: 'struct' });
const rowsPerWarpgroup = 64;

/** HopperForwardParams of kernels/hopper/flash_hopper_forward.cuh. */
export const hopperForwardStruct = new KernelStruct('HopperForwardParams', {
  q: 'tensorMap',
  k: 'tensorMap',
  v: 'tensorMap',
  o: 'tensorMap',
  lse: 'pointer',
  nextTile: 'pointer',
  scaleLog2: 'float32',
  scale: 'float32',
  queries: 'int32',
  keys: 'int32',
  heads: 'int32',
  headsPerKeyHead: 'int32',
  headsTotal: 'int32',
  rowTiles: 'int32',
  tiles: 'int32',
  band: 'int32',
});

let params: HostMemory | null = null;

/** Launches kernels/hopper/flash_hopper_forward.cu for operands that TMA can read. */
export function launchHopperForward(call: FlashCall, plan: HopperForwardPlan): void {
  const { context } = call;
  const { forward } = plan;
  const sharedBytes = hopperForwardSharedBytes(forward);
  const { tiles } = tilesOf(call, forward);
  const resident = context.properties.multiprocessors * forward.blocksPerMultiprocessor;
  const blocks = forward.splits > 1 ? tiles * forward.splits : Math.min(tiles, resident);
  const bytes = hopperForwardParams(cudaDevice(context), call, plan);
  context
    .kernel(forwardSpec(call, forward))
    .launch([blocks, 1, 1], 128 * (forward.warpgroups + 1), sharedBytes, kernel.byName({ p: bytes }));
}

/** What `launchHopperForward` launches. */
export function hopperForwardKernels(call: VariantCall, { forward }: HopperForwardPlan): KernelSpec[] {
  return [forwardSpec(call, forward)];
}

type VariantCall = Pick<FlashCall, 'dtype' | 'settings'>;

function forwardSpec(call: VariantCall, tile: HopperForwardTile): KernelSpec {
  return announcing(kernel(hopperForwardDefines(call, tile)), hopperForwardSharedBytes(tile));
}

/** The macros of flash_hopper_forward.cu. */
export function hopperForwardDefines(
  { dtype, settings }: VariantCall,
  tile: HopperForwardTile,
): Record<string, string | number> {
  return {
    ELEMENT: storageType(dtype),
    HEAD_DIM: tile.headDimension,
    CHUNK: tile.chunk,
    BLOCK_N: tile.keys,
    WARPGROUPS: tile.warpgroups,
    STAGES: tile.stages,
    BLOCKS_PER_SM: tile.blocksPerMultiprocessor,
    CAUSAL: settings.causal ? 1 : 0,
    SPLITS: tile.splits,
    OUTPUT_OVER_QUERIES: tile.outputOverQueries ? 1 : 0,
    Q_IN_REGISTERS: tile.queriesInRegisters ? 1 : 0,
    CONSUMER_REGISTERS: tile.consumerRegisters,
    PRODUCER_REGISTERS: tile.producerRegisters,
  };
}

/** As flash_hopper_forward.cu says. */
export function hopperForwardSharedBytes({
  headDimension,
  warpgroups,
  chunk,
  stages,
  keys,
  outputOverQueries,
}: HopperForwardTile): number {
  const padded = Math.ceil(headDimension / chunk) * chunk;
  const ofQueries = (outputOverQueries ? 1 : 2) * 128 * warpgroups * padded;
  return 1024 + ofQueries + 4 * stages * keys * padded + 512;
}

/** Tiles of queries of each head, and of all of them. */
function tilesOf(
  { sizes: { batch, heads, queries } }: Pick<FlashCall, 'sizes'>,
  { warpgroups }: HopperForwardTile,
): { readonly rowTiles: number; readonly tiles: number } {
  const rowTiles = Math.ceil(queries / (rowsPerWarpgroup * warpgroups));
  return { rowTiles, tiles: rowTiles * batch * heads };
}

/** The bytes of a HopperForwardParams. They are the same array at each call, which a launch copies. */
export function hopperForwardParams(
  device: Pick<CudaDevice, 'encodeTensorMap' | 'scratch'>,
  call: Pick<FlashCall, 'sizes' | 'settings' | 'tensors' | 'rows'>,
  { forward, forwardBand }: HopperForwardPlan,
): Uint8Array {
  const memory = (params ??= new HostMemory(hopperForwardStruct.byteLength));
  const { q, k, v, o } = call.tensors;
  const { tensorMaps, int64, words, floats } = hopperForwardStruct;
  const { chunk } = forward;
  const ofQueries = { rows: rowsPerWarpgroup, chunk, wholeRows: true };
  const ofKeys = { rows: forward.keys, chunk, wholeRows: true };
  const stored = { rows: rowsPerWarpgroup / forward.splits, chunk, wholeRows: false };
  device.encodeTensorMap(headTensorMap(q, ofQueries), memory, tensorMaps.q);
  device.encodeTensorMap(headTensorMap(k, ofKeys), memory, tensorMaps.k);
  device.encodeTensorMap(headTensorMap(v, ofKeys), memory, tensorMaps.v);
  device.encodeTensorMap(headTensorMap(o, stored), memory, tensorMaps.o);
  memory.writeInt64(int64.lse, call.rows.lse);
  memory.writeInt64(int64.nextTile, device.scratch('flash_hopper_forward tiles', 4));
  const { scale } = call.settings;
  memory.floats[floats.scaleLog2] = scale * Math.LOG2E;
  memory.floats[floats.scale] = scale;
  const { batch, heads, keyHeads, queries, keys } = call.sizes;
  const { rowTiles, tiles } = tilesOf(call, forward);
  memory.words[words.queries] = queries;
  memory.words[words.keys] = keys;
  memory.words[words.heads] = heads;
  memory.words[words.headsPerKeyHead] = heads / keyHeads;
  memory.words[words.headsTotal] = batch * heads;
  memory.words[words.rowTiles] = rowTiles;
  memory.words[words.tiles] = tiles;
  memory.words[words.band] = forwardBand;
  return memory.bytes.subarray(0, hopperForwardStruct.byteLength);
}
