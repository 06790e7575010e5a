import type { Block, Report, Section } from '@roofline/reports';
import type { CellRecord } from '../../../records/record.ts';
import { variantWords } from '../parameters.ts';
import { compiledTable } from './compiled-table.ts';
import { e2ePlots } from './plots.ts';
import { interpretRecord, type E2eMeasurement } from './interpret.ts';
import { headlinePlot } from './headline.ts';
import { phaseRooflines } from './roofline.ts';
import { e2eSummary } from './summary.ts';
import { peerTable, phaseTable, timeTable } from './tables.ts';
import { peerFailures } from '../../../report/peer-failures.ts';
import { reportHead } from '../../../report/report-head.ts';
import { spreadNotes } from '../../../report/spread-notes.ts';

/** The report of end-to-end records of one device and one set of settings. */
export function e2eReport(records: readonly CellRecord[]): Report {
  const measurements = records.map(interpretRecord);
  const chart = headlinePlot(measurements);
  return {
    ...reportHead('Transformer training, end to end', records),
    summary: e2eSummary(measurements),
    ...(chart && { chart }),
    sections: [timeSection(measurements), ...plotSections(measurements)],
  };
}

function timeSection(measurements: readonly E2eMeasurement[]): Section {
  const others = [compiledTable(measurements), peerTable(measurements), phaseTable(measurements)].flatMap(
    (table) => table ?? [],
  );
  return {
    id: 'times',
    title: 'Times',
    text: [
      'Each step begins and ends with an idle device. Next to each time is its floor: for each phase the ' +
        'larger of FLOPs over the measured matrix-product ceiling and bytes over the measured copy bandwidth.',
    ],
    blocks: [timeTable(measurements), ...warnings(measurements), ...others],
  };
}

function plotSections(measurements: readonly E2eMeasurement[]): Section[] {
  const plots = [...e2ePlots(measurements), ...phaseRooflines(measurements)];
  return plots.length === 0 ? [] : [{ id: 'plots', title: 'Plots', blocks: plots }];
}

function warnings(measurements: readonly E2eMeasurement[]): Block[] {
  const peers = measurements.map(({ cell, measured }) => ({ cell, peer: measured?.result.peer }));
  const name = ({ cell }: E2eMeasurement) =>
    [`${cell.size} ${cell.mode} at context ${cell.context}`, ...variantWords(cell)].join(', ');
  const timed = measurements.flatMap((each) =>
    each.measured ? [{ name: name(each), samplesMs: [each.measured.result.deviceMs] }] : [],
  );
  return [
    ...spreadNotes(timed),
    ...peerFailures(peers).map((text): Block => ({ kind: 'note', tone: 'warning', text })),
  ];
}
