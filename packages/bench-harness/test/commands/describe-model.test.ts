import { expect, it } from 'vitest';
import { describeModel, modelTables } from '../../src/commands/describe-model.ts';

const shape = { vocabularySize: 100, modelDimension: 8, feedForwardDimension: 16, layers: 1, heads: 2 };

it.each([
  [
    { ...shape, vocabularySize: 100_000, modelDimension: 1024, feedForwardDimension: 4096, layers: 48 },
    'TFLOP',
    1e12,
  ],
  [{ ...shape, modelDimension: 128, feedForwardDimension: 512, layers: 4 }, 'GFLOP', 1e9],
  [shape, 'MFLOP', 1e6],
])('counts the FLOPs of %j in %s', (shape, unit, size) => {
  const model = describeModel({ size: 'custom', shape }, { batch: 4, context: 64 });
  const [, table] = modelTables(model);
  expect(table!.columns[1]).toMatchObject({ key: 'flops', unit });
  expect(table!.rows.at(-1)).toEqual({ what: 'total', flops: model.flops.total / size });
  expect(model.flops.total / size).toBeGreaterThanOrEqual(1);
});
