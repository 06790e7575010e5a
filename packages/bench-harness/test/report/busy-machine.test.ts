import { renderMarkdown } from '@roofline/reports';
import { expect, it } from 'vitest';
import { e2eBenchmark } from '../../src/benchmarks/e2e/benchmark.ts';
import { busyMachineNotes } from '../../src/report/disturbances.ts';
import { toyRecord } from '../fixtures/records.ts';

const busyBy = (busyCores: number | null, context = 16) =>
  toyRecord({ context }, { otherWork: busyCores === null ? null : { busyCores, cores: 20 } });
const textOf = (...records: Parameters<typeof busyMachineNotes>[0]) =>
  busyMachineNotes(records, ({ parameters }) => `context ${parameters['context']}`)[0]?.text ?? null;

it('a machine is busy where others took more than a tenth of it', () => {
  expect([textOf(toyRecord()), textOf(busyBy(null)), textOf(busyBy(1.99)), textOf(busyBy(2))]).toEqual([
    ...[null, null, null, null],
  ]);
  expect(textOf(busyBy(2.01))).toBe(
    'The machine was busy while 1 of 1 cells were measured: other processes took up to 2.0 of its 20 cores, so that ' +
      'times may be too long.',
  );
  expect(textOf(busyBy(3, 8), busyBy(1, 16), busyBy(7, 32), toyRecord())).toBe(
    'The machine was busy while 2 of 4 cells were measured (context 8; context 32): other processes took up to 7.0 of its ' +
      '20 cores, so that times may be too long.',
  );
});

it('was busiest where others took most of it, of whatever number of cores', () => {
  const few = toyRecord({ context: 8 }, { otherWork: { busyCores: 3, cores: 4 } });
  expect(textOf(busyBy(7), few)).toContain('up to 3.0 of its 4 cores');
});

it('is said on the page, below the first results', () => {
  const page = renderMarkdown(e2eBenchmark.toReport([busyBy(9)]));
  expect(page).toContain('> The machine was busy while 1 of 1 cells were measured');
  expect(renderMarkdown(e2eBenchmark.toReport([busyBy(1)]))).not.toContain('busy');
});
