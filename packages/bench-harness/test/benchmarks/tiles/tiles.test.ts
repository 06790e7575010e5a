import { hostCompilerVersion } from '@roofline/cuda/testing';
import { device } from '@roofline/tensor-core';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { describe, expect, it } from 'vitest';
import { measureTile } from '../../../src/benchmarks/tiles/measure.ts';
import { tilesBenchmark } from '../../../src/benchmarks/tiles/benchmark.ts';
import type { TileCell } from '../../../src/benchmarks/tiles/parameters.ts';
import { cellKey, SCHEMA_VERSION, sweepIdentity, type CellRecord } from '../../../src/records/record.ts';
import { toyEnvironment } from '../../fixtures/environment.ts';
import { runMain } from '../../fixtures/run-main.ts';

const settings = { warmupMs: 1, repeatMs: 1, seed: 0 };
const cell = (tileQueries: number, tileKeys: number, changes: Partial<TileCell> = {}): TileCell => ({
  ...{ headDimension: 16, sequence: 40, batch: 1, heads: 1, mask: 'causal', dtype: 'float32' },
  ...{ tileQueries, tileKeys, ...changes },
});

function record(parameters: TileCell, result: CellRecord['result']): CellRecord {
  const identity = sweepIdentity('tiles', settings, toyEnvironment);
  return {
    ...{
      schemaVersion: SCHEMA_VERSION,
      benchmark: 'tiles',
      key: cellKey(identity, parameters),
      status: 'ok',
    },
    ...{ parameters, settings, environment: toyEnvironment, ceilings: null, result, error: null },
    ...{ startedAt: '2026-01-02T03:04:05.000Z', durationMs: 1000 },
  };
}

it('times the tiled algorithm in tensor ops on the CPU', () => {
  const result = measureTile(cell(16, 24), settings, device('cpu'));
  expect(result).toMatchObject({ status: 'ok', kernel: null });
  expect(tilesBenchmark.result.parse(result)).toEqual(result);
});

describe.skipIf(!hostCompilerVersion())('on the emulated GPU', () => {
  const emulated = openEmulatedDevice();

  it('times a kernel of the tile, and says what it takes', () => {
    expect(measureTile(cell(32, 16), settings, emulated)).toMatchObject({
      status: 'ok',
      // Rows of 16 elements of four bytes and 16 bytes of padding.
      kernel: { threads: 64, sharedBytes: (32 + 2 * 16) * 80 },
    });
  });

  it('says of a tile that has no room why', () => {
    const { status, reason } = measureTile(cell(256, 256, { headDimension: 256 }), settings, emulated) as {
      status: string;
      reason: string;
    };
    expect(status).toBe('does-not-fit');
    expect(reason).toContain('a tile of 256 queries and 256 keys takes 798720 bytes of shared memory');
  });
});

it('shows one row a tile, the fastest in words, and the one without room with its reason', () => {
  const kernel = { threads: 64, sharedBytes: 5120, registersPerThread: 128, localBytesPerThread: 0 };
  const records = [
    record(cell(16, 16), { status: 'ok', samplesMs: [4, 4, 4], kernel }),
    record(cell(16, 64), { status: 'ok', samplesMs: [2, 2, 2], kernel }),
    record(cell(256, 256), { status: 'does-not-fit', reason: 'this GPU has 232448 for a block' }),
  ];
  const { rows } = tilesBenchmark.toTable(records);
  expect(rows[1]).toMatchObject({ tileQueries: 16, tileKeys: 64, medianMs: 2, registersPerThread: 128 });
  expect(rows[2]).toMatchObject({ status: 'not-available', error: 'this GPU has 232448 for a block' });
  expect(tilesBenchmark.toOverview(records).findings[0]).toBe(
    'Of tiles of queries × keys 16 × 64 with **2.00 ms** is the fastest, 16 × 16 with **4.00 ms** the slowest, and 1 of 3 do not ' +
      'fit (d 16 · sequence 40 · batch 1 · float32).',
  );
});

it('refuses what tiles are not timed by', async () => {
  for (const [flag, value] of [
    ['--rounds', '2'],
    ['--attention', 'plain'],
    ['--pass', 'both'],
  ])
    expect((await runMain(['flash', '--tile', '16', flag!, value!])).stderr).toContain(`leave out ${flag}.`);
});
