import { renderMarkdown } from '@roofline/reports';
import { expect, it } from 'vitest';
import { e2eBenchmark } from '../../src/benchmarks/e2e/benchmark.ts';
import { cellRecord, type CellRecord } from '../../src/records/record.ts';
import type { Throttling } from '../../src/records/throttling.ts';
import { throttledClocksNotes } from '../../src/report/disturbances.ts';
import { toyRecord } from '../fixtures/records.ts';

const free = { power: 0, thermal: 0, hardware: 0 };
const held = (
  gpu: Partial<typeof free> | null,
  cpuSlowdowns: Throttling['cpuSlowdowns'] = null,
  context = 16,
) => toyRecord({ context }, { throttling: { gpu: gpu && { ...free, ...gpu }, cpuSlowdowns } });
const notesOf = (...records: CellRecord[]) =>
  throttledClocksNotes(records, ({ parameters }) => `context ${parameters['context']}`);

it('nothing is claimed where nothing held clocks down, or none can say', () => {
  const unknown = toyRecord(
    {},
    { throttling: { gpu: { power: null, thermal: null, hardware: null }, cpuSlowdowns: null } },
  );
  const quiet = [toyRecord(), toyRecord({}, { throttling: null }), held(null), held({}, 0), unknown];
  expect(quiet.flatMap((record) => notesOf(record))).toEqual([]);
  expect(notesOf(held({ power: 0.0099, thermal: 0.0099, hardware: 0.0099 }))).toEqual([]);
});

it('a power limit is said, without alarm; heat and hardware are the alarm', () => {
  const notes = notesOf(held({ power: 0.43, thermal: 0.01, hardware: 0.25 }, 1));
  expect(notes.map(({ tone }) => tone)).toEqual(['info', 'warning', 'warning', 'warning']);
  expect(notes.map(({ text }) => text)).toEqual([
    "A power limit held the GPU's clocks down for up to 43.0 % of the time while 1 of 1 cells were measured; large matrix " +
      'products reach it as a rule.',
    "Heat held the GPU's clocks down for up to 1.00 % of the time while 1 of 1 cells were measured, so that times may be too " +
      'long: cool it better.',
    "The GPU's hardware held its clocks down for up to 25.0 % of the time while 1 of 1 cells were measured, so that times may " +
      'be too long: its supply does not suffice, or a brake of the machine is on (`nvidia-smi -q -d PERFORMANCE`).',
    'Heat slowed the CPU down up to once while 1 of 1 cells were measured, so that times may be too long: cool it better.',
  ]);
});

it('names the cells where not all had it, and the most of them', () => {
  const [power, cpu] = notesOf(
    held({ power: 0.2 }, 0, 8),
    held({ power: 0.9 }, 7, 32),
    held({}, 2, 64),
    toyRecord(),
  );
  expect(power!.text).toContain(
    'up to 90.0 % of the time while 2 of 4 cells were measured (context 8; context 32);',
  );
  expect(cpu!.text).toContain('up to 7 times while 2 of 4 cells were measured (context 32; context 64), ');
});

it('is said on the page, below the first results', () => {
  const page = renderMarkdown(e2eBenchmark.toReport([held({ thermal: 0.5 })]));
  expect(page).toContain("> Heat held the GPU's clocks down for up to 50.0 %");
  expect(renderMarkdown(e2eBenchmark.toReport([held({})]))).not.toContain('clocks down');
});

it('is read back from a line of results, and of older ones is not there', () => {
  const record = held({ power: 0.5 }, 3);
  expect(cellRecord.parse(JSON.parse(JSON.stringify(record))).throttling).toEqual(record.throttling);
  expect(cellRecord.parse(JSON.parse(JSON.stringify(toyRecord()))).throttling).toBeUndefined();
});
