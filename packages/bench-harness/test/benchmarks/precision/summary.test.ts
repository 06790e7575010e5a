import { describe, expect, it } from 'vitest';
import { type Plot, renderHtml } from '@roofline/reports';
import type { JsonObject } from '../../../src/records/json.ts';
import { precisionSummary } from '../../../src/benchmarks/precision/report/summary.ts';
import type { CellRecord } from '../../../src/records/record.ts';
import { reportOfRecords } from '../../../src/report/report-of-records.ts';
import { toyCell, toyRecord } from '../../fixtures/records.ts';

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

const dtypes = (torch: JsonObject) =>
  record({ study: 'dtypes', dtype: 'bfloat16' }, { ours: toyDtypes, torch });

const accuracy = (size: string, gradients: number) =>
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

  it('sets the errors beside those of PyTorch', () => {
    expect(precisionSummary([accuracy('small', 0.009), accuracy('xl', 0.012)])).toEqual([
      "Against float64 the gradients' error is **0.90×** for small, bfloat16 to **1.20×** for xl, bfloat16 that of " +
        'PyTorch under the same autocast.',
    ]);
  });

  it('says nothing of studies that were not run', () => {
    expect(precisionSummary([])).toEqual([]);
  });
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
