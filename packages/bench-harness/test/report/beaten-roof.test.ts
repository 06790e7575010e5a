import { expect, it } from 'vitest';
import { attentionBenchmark } from '../../src/benchmarks/attention/benchmark.ts';
import { e2eBenchmark } from '../../src/benchmarks/e2e/benchmark.ts';
import { flashBenchmark } from '../../src/benchmarks/flash/benchmark.ts';
import { beatenRoofSentence } from '../../src/report/beaten-roof.ts';
import type { CellRecord } from '../../src/records/record.ts';
import { attentionRecord, flashRecord } from '../fixtures/attention-records.ts';
import { toyRecord } from '../fixtures/records.ts';

const ceilings = (flopsPerSecond: number): Partial<CellRecord> => ({
  ceilings: { matmulFlopsPerSecond: { float32: flopsPerSecond }, copyBytesPerSecond: 1e11 },
});
const disturbed =
  /^\*\*Floors and shares of the roof are wrong here\*\*: .* reaches .* TFLOP\/s, and what was measured/;

it.each([
  ['e2e', (changes: Partial<CellRecord>) => e2eBenchmark.toReport([toyRecord({}, changes)])],
  ['flash', (changes: Partial<CellRecord>) => flashBenchmark.toReport([{ ...flashRecord(), ...changes }])],
  [
    'attention',
    (changes: Partial<CellRecord>) => attentionBenchmark.toReport([{ ...attentionRecord(), ...changes }]),
  ],
])('a report of %s warns of ceilings that were measured on a disturbed device', (_, reportOf) => {
  const told = (flopsPerSecond: number) =>
    reportOf(ceilings(flopsPerSecond)).summary.filter((sentence) => disturbed.test(sentence));
  expect(told(1e3)).toHaveLength(1);
  expect(told(1e3)[0]).toContain('`roofline doctor --device ');
  expect(told(1e15)).toEqual([]);
});

it('takes a ceiling that is beaten by less than 5 % for one that was measured well', () => {
  const [row] = e2eBenchmark.toTable([toyRecord()]).rows;
  const flopsPerSecond = 1e9 * Number(row!['gigaflopsPerSecond']);
  const told = (ceiling: number) =>
    e2eBenchmark.toReport([toyRecord({}, ceilings(ceiling))]).summary.join('\n');
  expect(told(flopsPerSecond / 1.04)).not.toMatch(disturbed);
  expect(told(flopsPerSecond / 1.06)).toMatch(disturbed);
  expect(told(flopsPerSecond / 1.06)).not.toContain('Closest to the roof');
});

it('sees a forward pass of attention beat the ceiling where both passes together do not', () => {
  const record = attentionRecord();
  const slow = { deviceMs: [20, 20, 20], wallMs: [20, 20, 20] };
  // Of 2 · 2 · 64² · 16 FLOPs in 1 ms.
  const reached = (4 * 2 * 64 ** 2 * 16) / 2 / 1e-3;
  const told = (ceiling: number) =>
    attentionBenchmark
      .toReport([{ ...record, ...ceilings(ceiling), result: { ...record.result, backward: slow } }])
      .summary.join();
  expect(told(reached / 1.1)).toMatch(disturbed);
  expect(told(reached)).not.toMatch(disturbed);
});

it('names what is above its own ceiling the most, not what reaches the most', () => {
  const beating = (name: string, dtype: 'float32' | 'bfloat16', flopsPerSecond: number) => ({
    ...{ name, dtype, flopsPerSecond },
    record: toyRecord(
      {},
      { ceilings: { matmulFlopsPerSecond: { float32: 1e12, bfloat16: 1e14 }, copyBytesPerSecond: 1e11 } },
    ),
  });
  expect(
    beatenRoofSentence([beating('low', 'bfloat16', 1.2e14), beating('whole', 'float32', 3e12)])[0],
  ).toContain('whole reaches 3.00 TFLOP/s, and what was measured as the ceiling of float32 products is 1.00');
});
