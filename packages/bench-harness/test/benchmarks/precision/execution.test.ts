import { renderHtml } from '@roofline/reports';
import { device } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { e2eDtypes } from '../../../src/benchmarks/e2e/parameters.ts';
import { precisionBenchmark } from '../../../src/benchmarks/precision/benchmark.ts';
import { lossCurve } from '../../../src/benchmarks/precision/loss-curve.ts';
import { precisionCell, precisionSweep } from '../../../src/benchmarks/precision/parameters.ts';
import type { JsonObject } from '../../../src/records/json.ts';
import { tableIn } from '../../fixtures/blocks.ts';
import { toyCell, toyRecord, toyResult } from '../../fixtures/records.ts';

describe('the execution of the precision studies', () => {
  it('is swept where something runs', () => {
    const cells = precisionSweep.expand(
      precisionSweep.parameters.parse({
        model: [{ size: toyCell.size, shape: toyCell.shape }],
        ...{ context: [8], batch: [2], mode: ['forward'], attention: ['plain'], dtype: ['bfloat16'] },
        ...{ study: ['dtypes', 'accuracy', 'loss', 'speed'], execution: ['eager', 'compiled'] },
        ...{ warmup: 0, steps: 1, seed: 0, lossSteps: 1, peerAttention: ['plain'] },
        peer: { name: 'torch', version: '2.0' },
      }),
    );
    const told = cells.map((cell) => [cell.study, 'execution' in cell ? cell.execution : null].join());
    const both = (study: string) => [`${study},eager`, `${study},compiled`];
    expect(told).toEqual(['dtypes,', ...both('accuracy'), ...both('loss'), ...both('speed')]);
    expect(cells.map((cell) => precisionBenchmark.describe(cell))).toContain(
      'loss curve · bfloat16 · compiled',
    );
    expect(precisionCell.parse({ study: 'loss', dtype: 'float32' })).toMatchObject({ execution: 'eager' });
  });

  it.each(e2eDtypes)('gives the same losses in %s, and as many steps left out', (dtype) => {
    const [eager, compiled] = (['eager', 'compiled'] as const).map((execution) =>
      lossCurve(device('cpu'), { dtype, execution }, 6),
    );
    expect(compiled).toEqual(eager);
    expect(eager!.losses).toHaveLength(6);
  });

  it('compares reserved memory with a PyTorch that replays graphs, as end to end', () => {
    const { deviceMs, wallMs, phasesMs } = toyResult(2);
    const peaks = { peakAllocatedBytes: 2 ** 10, peakReservedBytes: 2 ** 23 };
    const peer = { status: 'ok', torch: '2.11.0', python: '3.12', device: 'Toy', deviceMs, wallMs, phasesMs };
    const record = (peerExecution: string) =>
      toyRecord(
        {},
        {
          benchmark: 'precision',
          parameters: { ...toyCell, study: 'speed', peerExecution } as JsonObject,
          result: { ...toyResult(), study: 'speed', peer: { ...peer, ...peaks } },
        },
      );
    const report = precisionBenchmark.toReport([record('compile'), record('reduce-overhead')]);
    const { rows } = tableIn(report, 'speed')!;
    expect(rows.map(({ memoryRatio, peerRatio }) => [memoryRatio, peerRatio])).toEqual([
      [2 ** 10, 0.5],
      [0.25, 0.5],
    ]);
  });

  it('has a table of both in the report', () => {
    const record = (execution: string, scale: number) =>
      toyRecord(
        {},
        {
          benchmark: 'precision',
          parameters: { ...toyCell, study: 'speed', execution } as JsonObject,
          result: { ...toyResult(scale), study: 'speed', compilation: { calls: 3, durationMs: 204 } },
        },
      );
    const report = precisionBenchmark.toReport([record('eager', 1), record('compiled', 0.5)]);
    const blocks = report.sections.flatMap((section) => section.blocks);
    const both = blocks.find((block) => block.kind === 'table' && block.id === 'compiled-beside-eager');
    expect(both).toMatchObject({ rows: [{ eagerMs: 10, compiledMs: 5, ratio: 0.5, paysAfter: 40 }] });
    expect(renderHtml(report)).toContain('Compiled vs eager');
    expect(JSON.stringify(precisionBenchmark.toReport([record('eager', 1)]))).not.toContain(
      'compiled-beside-eager',
    );
  });
});
