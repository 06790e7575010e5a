import { nvrtcVersion } from '@roofline/cuda/testing';
import { describe, expect, it } from 'vitest';
import type { AttentionShape, CompiledAttention } from '../../src/attention/shape.ts';
import { attentionBenchmark } from '../../src/benchmarks/attention/benchmark.ts';
import { flashBenchmark } from '../../src/benchmarks/flash/benchmark.ts';
import { tilesBenchmark } from '../../src/benchmarks/tiles/benchmark.ts';
import type { DeviceDescription } from '../../src/records/environment.ts';
import { compileAhead, gpuOf } from '../../src/runner/compile-ahead.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

const gpu: DeviceDescription = {
  ...{ label: 'cuda:0', type: 'cuda', name: 'a GPU that is not here' },
  properties: { computeCapability: '9.0', multiprocessors: 132, maxSharedKiBPerBlock: 227 },
};
const shape: AttentionShape = { batch: 1, heads: 1, headDimension: 16, sequence: 128, dtype: 'bfloat16' };

async function linesOf(shapes: readonly CompiledAttention[], device: DeviceDescription): Promise<string[]> {
  const lines: string[] = [];
  await compileAhead(shapes, device, { onDone: (line) => lines.push(line) });
  return lines;
}

describe('gpuOf', () => {
  it('reads what a device says of itself', () => {
    const facts = { computeCapability: 90, multiprocessors: 132, maxSharedBytesPerBlock: 232448 };
    expect(gpuOf(gpu)).toEqual(facts);
    expect(gpuOf({ ...gpu, properties: { computeCapability: '12.0' } }).computeCapability).toBe(120);
  });
});

describe('compileAhead', () => {
  it('does nothing on the CPU, and without flash attention', async () => {
    expect(await linesOf([shape], { ...gpu, type: 'cpu' })).toEqual([]);
    expect(await linesOf([], gpu)).toEqual([]);
  });

  it('says why it compiled nothing, and leaves it to the cells', async () => {
    const old = { ...gpu, properties: { ...gpu.properties, computeCapability: '7.5' } };
    expect(await linesOf([shape], old)).toEqual([
      expect.stringMatching(/^Kernels are compiled in their cells: .*7\.5; 8\.0/),
    ]);
  });

  it.skipIf(nvrtcVersion() === null)('compiles a kernel a tile, and none of one without room', async () => {
    process.env.ROOFLINE_CACHE_DIR = temporaryFolder();
    try {
      const tiles = [16, 32, 1024].map((queries) => ({ ...shape, tile: { queries, keys: 16 } }));
      expect(await linesOf(tiles, gpu)).toEqual([expect.stringMatching(/^compiling 2 kernels: /)]);
    } finally {
      delete process.env.ROOFLINE_CACHE_DIR;
    }
  });

  it.skipIf(nvrtcVersion() === null)('compiles once what cells run (needs libnvrtc)', async () => {
    process.env.ROOFLINE_CACHE_DIR = temporaryFolder();
    try {
      const refused = { ...shape, headDimension: 512 };
      expect(await linesOf([shape, refused], gpu)).toEqual([expect.stringMatching(/^compiling 3 kernels: /)]);
      expect(await linesOf([shape], gpu)).toEqual([]);
    } finally {
      delete process.env.ROOFLINE_CACHE_DIR;
    }
  });
});

describe('the flash attention of a cell', () => {
  it('is that of the cells that run it', () => {
    const settings = { warmup: 1, steps: 1, seed: 0 };
    const { heads: _, ...cell } = shape;
    expect(
      attentionBenchmark.flashAttention!({ ...cell, attention: 'flash', execution: 'eager' }, settings),
    ).toEqual(shape);
    expect(
      attentionBenchmark.flashAttention!({ ...cell, attention: 'plain', execution: 'eager' }, settings),
    ).toBeNull();
    const of = (attentions: string[]) =>
      flashBenchmark.flashAttention!({ mask: 'causal', ...shape }, { attentions } as never);
    const tiled = { mask: 'causal' as const, ...shape, tileQueries: 32, tileKeys: 16 };
    expect(tilesBenchmark.flashAttention!(tiled, {} as never)).toEqual({
      ...{ mask: 'causal', ...shape, tile: { queries: 32, keys: 16 } },
    });
    expect([of(['flash', 'plain']), of(['plain'])]).toEqual([{ mask: 'causal', ...shape }, null]);
  });
});
