import { describe, expect, it } from 'vitest';
import { type Plot, renderHtml } from '@roofline/reports';
import type { JsonObject } from '../../../src/records/json.ts';
import { precisionBenchmark } from '../../../src/benchmarks/precision/benchmark.ts';
import type { CellRecord } from '../../../src/records/record.ts';
import { reportOfRecords } from '../../../src/report/report-of-records.ts';
import { toyCell, toyRecord, toyResult } from '../../fixtures/records.ts';

const toyDtypes = {
  parameters: 'float32',
  'first layer': 'bfloat16',
  layerNorm: 'float32',
  logits: 'bfloat16',
  loss: 'float32',
  gradients: 'float32',
};

function record(parameters: JsonObject, result: JsonObject): CellRecord {
  return toyRecord(
    {},
    { benchmark: 'precision', parameters, result: { study: parameters['study']!, ...result } },
  );
}

const precisionSummary = (records: readonly CellRecord[]) => precisionBenchmark.toReport(records).summary;

const dtypes = (torch: JsonObject) =>
  record({ study: 'dtypes', dtype: 'bfloat16' }, { ours: toyDtypes, torch });

const accuracy = (size: string, gradients: number | null) =>
  record(
    { ...toyCell, size, study: 'accuracy', mode: 'forward-backward', dtype: 'bfloat16' },
    {
      torch: '2.11.0',
      ours: { loss: 1e-6, gradients },
      theirs: { loss: 1e-6, gradients: 0.01 },
      worst: { parameter: 'ln1', ratio: 1.2 },
    },
  );

describe('the summary of the precision studies', () => {
  it("says that the toy model's dtypes are PyTorch's, or which are not", () => {
    expect(precisionSummary([dtypes(toyDtypes)])).toEqual([
      "Autocast to bfloat16 gives all 6 tensors of the toy model PyTorch's dtypes.",
    ]);
    expect(precisionSummary([dtypes({ ...toyDtypes, logits: 'float32' })])).toEqual([
      "Autocast departs from PyTorch's dtypes in the toy model: logits under bfloat16 is bfloat16 and not float32.",
    ]);
  });

  it('compares the errors with those of PyTorch', () => {
    const { title, chart, summary } = precisionBenchmark.toReport([
      accuracy('small', 0.009),
      accuracy('xl', 0.012),
    ]);
    expect(title).toBe("Gradients under autocast have 0.90× to 1.20× of the error of PyTorch's");
    expect(chart).toMatchObject({
      value: 'number',
      theirs: 'PyTorch',
      rows: [{ ours: 0.009 }, { ours: 0.012 }],
    });
    expect(summary).toEqual([
      "The gradients' distance from float64's, over that of PyTorch under the same autocast, is **0.90×** for small to " +
        '**1.20×** for xl.',
    ]);
  });

  it('names batches where they are swept, and compares each model with itself in float32', () => {
    const speed = (cell: Partial<typeof toyCell>, scale: number) =>
      record(
        { ...toyCell, ...cell, study: 'speed' },
        { ...(toyResult(scale) as unknown as JsonObject), study: 'speed' },
      );
    const wide = { ...toyCell.shape, modelDimension: 64 };
    const records = [
      speed({}, 1),
      speed({ dtype: 'bfloat16' }, 0.5),
      speed({ batch: 8 }, 4),
      speed({ batch: 8, dtype: 'bfloat16' }, 1),
      speed({ shape: wide }, 8),
    ];
    const table = precisionBenchmark.toTable(records);
    expect(table.rows.map(({ what, finding }) => [what, finding])).toEqual([
      ['small, context 16, batch 2, train-step, float32', 'Median: 10.0 ms; Speed-up: 1.00×'],
      ['small, context 16, batch 2, train-step, bfloat16', 'Median: 5.00 ms; Speed-up: 2.00×'],
      ['small, context 16, batch 8, train-step, float32', 'Median: 40.0 ms; Speed-up: 1.00×'],
      ['small, context 16, batch 8, train-step, bfloat16', 'Median: 10.0 ms; Speed-up: 4.00×'],
      ['small, context 16, batch 2, train-step, float32', 'Median: 80.0 ms; Speed-up: 1.00×'],
    ]);
    expect(precisionSummary(records)).toEqual([
      '`bfloat16` runs `train-step` at **2.83×** (2.00× for small, batch 2, 4.00× for small, batch 8) the ' +
        'speed of float32, in the geometric mean.',
      'Peak memory under autocast is **1.00×** of that in float32.',
    ]);
    const { title, chart } = precisionBenchmark.toReport(records);
    expect(title).toBe('A bfloat16 training step takes 0.25× to 0.50× of the time of a float32 one');
    expect(chart).toMatchObject({
      ...{ ours: 'Autocast', theirs: 'float32' },
      rows: [
        { names: ['2'], ours: 5, theirs: 10 },
        { names: ['8'], ours: 10, theirs: 40 },
      ],
    });
    const blocks = precisionBenchmark.toReport(records).sections.flatMap((section) => section.blocks);
    const [plot] = blocks.filter((block): block is Plot => block.kind === 'plot' && block.id === 'speed-ups');
    expect(plot!.series[0]!.points.map(({ x }) => x)).toEqual(['small, batch 2', 'small, batch 8']);
  });

  it('tells accuracies of several contexts apart', () => {
    const longer = accuracy('small', 0.012);
    const records = [
      accuracy('small', 0.009),
      { ...longer, parameters: { ...longer.parameters, context: 32 } },
    ];
    expect(precisionSummary(records)[0]).toContain('for small, context 16 to');
    expect(precisionBenchmark.toTable(records).rows.map(({ what }) => what)).toEqual([
      'small, context 16',
      'small, context 32',
    ]);
  });
});

it('a diverged gradient has no ratio, and does not stand in the way of the others', () => {
  const { title, chart } = precisionBenchmark.toReport(
    [0.009, null, 0.012].map((error, index) => accuracy(['small', 'large', 'xl'][index]!, error)),
  );
  expect(title).toContain('0.90× to 1.20×');
  expect(chart).toMatchObject({ rows: [{ ours: 0.009 }, { ours: null }, { ours: 0.012 }] });
});

it('without speed and accuracy the losses lead', () => {
  const loss = (dtype: string, last: number) =>
    record({ study: 'loss', dtype, execution: 'eager' }, { losses: [5, last], skipped: 0 });
  const { title, chart, sections } = precisionBenchmark.toReport([
    loss('float32', 0.5),
    loss('bfloat16', 0.55),
  ]);
  expect(title).toBe('Training in lower precision ends at 1.10× of the loss of float32');
  expect(chart!.id).toBe('loss-curves');
  expect(sections.at(-1)!.blocks.map(({ kind }) => kind)).toEqual(['table']);
});

it('a run that diverges, or learns all there is, is reported', async () => {
  const losses = JSON.parse(JSON.stringify([5.9, 0, Infinity, NaN])) as number[];
  const record = toyRecord(
    {},
    {
      benchmark: 'precision',
      parameters: { study: 'loss', dtype: 'float16', execution: 'eager' },
      settings: { warmup: 1, steps: 1, seed: 0, peer: null, lossSteps: 4 },
      result: { study: 'loss', losses, skipped: 0 },
    },
  );
  const report = await reportOfRecords([record]);
  expect(report.summary).toContain('The overfitting example ends at a loss of NaN in `float16`.');
  const [plot] = report.sections
    .flatMap(({ blocks }) => blocks)
    .filter(({ kind }) => kind === 'plot') as Plot[];
  expect(plot!.series[0]!.points.map(({ y }) => y)).toEqual([5.9, null, null, null]);
  expect(renderHtml(report)).toContain('<!doctype html>');
});
