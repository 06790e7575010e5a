import { flashAttention, flashTileKernel, setFlashTile, tiledAttention } from '@roofline/flash-attn';
import { DeviceError, device as openDevice, noGrad, scope, type Device } from '@roofline/tensor-core';
import { cudaDevice } from '@roofline/tensor-core/kernel-api';
import { createOperands, type AttentionOperands } from '../../attention/operands.ts';
import { doBench } from '../../measuring/do-bench.ts';
import type { CellContext } from '../../runner/cell-task.ts';
import { CacheFlush, flushedBytesOf } from '../flash/own-contender.ts';
import type { TileCell, TileResult, TileSettings } from './parameters.ts';

/** Times the forward pass by tiles of one size: on a GPU by the kernel for every GPU, on the CPU by the algorithm in tensor ops. */
export function measureTiles(
  cell: TileCell,
  { settings, deviceLabel }: CellContext<TileSettings>,
): TileResult {
  const device = openDevice(deviceLabel as `cuda:${number}`);
  return measureTile(cell, settings, device);
}

export function measureTile(cell: TileCell, settings: TileSettings, device: Device): TileResult {
  const { tileQueries, tileKeys, ...shape } = cell;
  const tile = { queries: tileQueries, keys: tileKeys };
  const { warmupMs, repeatMs, seed } = settings;
  try {
    const kernel = device.type === 'cuda' ? kernelOf(cell, device) : null;
    if (device.type === 'cuda') setFlashTile(tile);
    using operands = createOperands(shape, device, seed);
    using flush = new CacheFlush(device, flushedBytesOf(device));
    const samplesMs = noGrad(() =>
      doBench(device, () => scope(() => attend(operands, device, tile)), {
        ...{ warmupMs, repeatMs, flush: () => flush.run() },
      }),
    );
    return { status: 'ok', samplesMs, kernel };
  } catch (error) {
    if (error instanceof DeviceError && /has \d+ for a block/.test(error.message))
      return { status: 'does-not-fit', reason: error.message };
    throw error;
  } finally {
    setFlashTile(null);
  }
}

function attend(
  { q, k, v, causal }: AttentionOperands,
  device: Device,
  tile: { readonly queries: number; readonly keys: number },
): void {
  if (device.type === 'cuda') flashAttention(q, k, v, { causal });
  else tiledAttention(q, k, v, { causal, blockSize: tile });
}

/** Throws the DeviceError of a tile that has no room. */
function kernelOf(cell: TileCell, device: Device): Extract<TileResult, { status: 'ok' }>['kernel'] {
  const { batch, heads, sequence, headDimension, dtype, tileQueries, tileKeys } = cell;
  const gpu = cudaDevice(device);
  const operand = [batch, heads, sequence, headDimension];
  const shapes = { q: operand, k: operand, dtype };
  const tile = { queries: tileQueries, keys: tileKeys };
  const { spec, threads, sharedBytes } = flashTileKernel(shapes, gpu.facts, tile);
  const { registersPerThread, localBytesPerThread, staticSharedBytes } = gpu.kernel(spec).resources();
  return { threads, sharedBytes: sharedBytes + staticSharedBytes, registersPerThread, localBytesPerThread };
}
