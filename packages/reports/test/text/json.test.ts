import { expect, it } from 'vitest';
import { renderJson } from '../../src/index.ts';
import { measurements, sampleReport } from '../fixtures.ts';

it('is the model itself', () => {
  const report = sampleReport({ sections: [{ id: 'a', title: 'A', blocks: [] }] });
  expect(JSON.parse(renderJson(report))).toEqual(report);
});

it('spells what JSON has no number for', () => {
  const table = measurements();
  table.rows[1]!.ratio = Infinity;
  const { rows } = JSON.parse(renderJson(table)) as ReturnType<typeof measurements>;
  expect(rows[1]!.ratio).toBe('Infinity');
  expect(rows[2]).toMatchObject({ timeMs: 'NaN', status: 'out-of-memory' });
});
