import { expect, it } from 'vitest';
import { volumeTable } from '../../../src/benchmarks/ddp/report/volume.ts';
import type { DdpMeasurement } from '../../../src/benchmarks/ddp/report/measured.ts';
import { toyRecord } from '../../fixtures/records.ts';

/** 1000 parameters, whose gradients take 4000 bytes in two reductions. */
function measured(cell: object): DdpMeasurement {
  const times = { synchronizedMs: [3], localMs: [2], communicationMs: [1], optimizerMs: [1], stepMs: [4] };
  const result = { times, bucketBytes: [1000, 3000], parameterCount: 1000, peer: null };
  const whole = { optimizer: 'whole', mode: 'overlap', worldSize: 2, dtype: 'float32' };
  return { name: 'toy', record: toyRecord(), cell: { ...whole, ...cell }, result } as never;
}

it('is what each rank sends, next to what the stages of ZeRO send', () => {
  const [table] = volumeTable([
    measured({}),
    measured({ optimizer: 'sharded', worldSize: 4 }),
    measured({ mode: 'fsdp', dtype: 'bfloat16' }),
    measured({ worldSize: 1 }),
  ]);
  const volumes = table!.rows.map((row) =>
    ['gradientsSentBytes', 'parametersSentBytes', 'stage', 'zeroBytes', 'volumeRatio'].map((key) => row[key]),
  );
  expect(volumes).toEqual([
    [4000, 0, 0, 4000, 1],
    // Three quarters: of gradients twice, and of parameters once; ZeRO scatters gradients and gathers parameters.
    [6000, 3000, 1, 6000, 1.5],
    // Halves: gradients scattered, and parameters gathered twice in two bytes each.
    [2000, 2000, 3, 6000, 4000 / 6000],
  ]);
});

it('is no table of one rank', () => {
  expect(volumeTable([measured({ worldSize: 1 })])).toEqual([]);
});

it('leaves out two halves, and divided layers and sequences, whose ranks send activations', () => {
  const modes = ['hybrid', 'tensor', 'fsdp-tensor', 'fsdp-context'] as const;
  expect(volumeTable(modes.map((mode) => measured({ mode, worldSize: 4 })))).toEqual([]);
});
