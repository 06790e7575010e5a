import type { Report, Section } from '@roofline/reports';
import type { Pass } from '../../../attention/work.ts';
import type { CellRecord } from '../../../records/record.ts';
import { reportHead } from '../../../report/report-head.ts';
import { interpretFlash, type FlashMeasurement } from './interpret.ts';
import { memoryPlots, throughputPlots, timePlots } from './plots.ts';
import { flashSummary } from './summary.ts';
import { memoryTable, passTable, passTitles } from './tables.ts';

const method =
  'Times are those of calls in a queue, as triton.testing.do_bench takes them: between two events on the device, with ' +
  'the L2 cache of a GPU overwritten before each. All attentions of a shape take turns in one run.';
const formula =
  'FLOPs are 2 · batch · heads · sequence² · d forward (4 without a causal mask) and 2.5 times that backward, whatever ' +
  'an implementation calculates.';

/** The report of records of one device and one set of settings. */
export function flashReport(records: readonly CellRecord[]): Report {
  const measurements = interpretFlash(records);
  const passes = [...new Set(measurements.map(({ pass }) => pass))];
  return {
    ...reportHead('FlashAttention', records),
    summary: flashSummary(measurements),
    sections: [
      ...passes.map((pass) => passSection(measurements, pass)),
      {
        id: 'memory',
        title: 'Memory',
        blocks: [memoryTable(measurements), ...memoryPlots(measurements, passes[0]!)],
      },
    ],
  };
}

function passSection(measurements: readonly FlashMeasurement[], pass: Pass): Section {
  return {
    id: pass,
    title: passTitles[pass],
    text: [method, formula],
    blocks: [
      passTable(measurements, pass),
      ...timePlots(measurements, pass),
      ...throughputPlots(measurements, pass),
    ],
  };
}
