import type { Report } from '@roofline/reports';
import type { CellRecord } from '../../../records/record.ts';
import { reportHead } from '../../../report/report-head.ts';
import { spreadNotes, type TimedCell } from '../../../report/spread-notes.ts';
import { describeAttentionCell } from '../parameters.ts';
import { interpretAttention, type AttentionMeasurement } from './interpret.ts';
import { compiledAttentionTable } from './compiled-table.ts';
import { memoryPlots, timePlots } from './plots.ts';
import { attentionSummary } from './summary.ts';
import { attentionTable, memoryTable } from './tables.ts';

/** The report of records of one device and one set of settings. */
export function attentionReport(records: readonly CellRecord[]): Report {
  const measurements = records.map(interpretAttention);
  return {
    ...reportHead('Attention', records),
    summary: attentionSummary(measurements),
    sections: [
      {
        id: 'times',
        title: 'Times',
        text: [
          'Each pass begins and ends with an idle device. The work that the roof is calculated of is 2 · batch · ' +
            'sequence² · d FLOPs forward (half of what attention without a mask takes) and 2.5 times that backward.',
        ],
        blocks: [
          attentionTable(measurements),
          ...spreadNotes(measurements.flatMap(timedCell)),
          ...[compiledAttentionTable(measurements)].filter((table) => table !== null),
          ...timePlots(measurements),
        ],
      },
      {
        id: 'memory',
        title: 'Memory',
        text: [
          'With T = batch · sequence · d numbers in a tensor and S = batch · sequence² in the scores: plain attention ' +
            'holds 5 T + S before backward and 6 T + 3 S at most; flash 5 T and at most 8 T, with one float32 number a ' +
            'row, three in float32; tiled two a row.',
        ],
        blocks: [memoryTable(measurements), ...memoryPlots(measurements)],
      },
    ],
  };
}

function timedCell({ cell, measured }: AttentionMeasurement): TimedCell[] {
  if (measured === null) return [];
  const { forward, backward, both } = measured.result;
  const samplesMs = [forward, backward, both].flatMap((pass) => (pass ? [pass.deviceMs] : []));
  return [{ name: describeAttentionCell(cell), samplesMs }];
}
