import type { Block, Report, Section } from '@roofline/reports';
import type { CellRecord } from '../records/record.ts';
import { e2ePlots } from './e2e-plots.ts';
import { interpretRecord, spreadIsWide, type E2eMeasurement } from './e2e-rows.ts';
import { e2eSummary } from './e2e-summary.ts';
import { phaseTable, timeTable } from './e2e-tables.ts';
import { environmentFacts } from './environment-facts.ts';

/** The report of end-to-end records of one device and one set of settings. */
export function e2eReport(records: readonly CellRecord[]): Report {
  const measurements = records.map(interpretRecord);
  const latest = records.reduce((a, b) => (a.startedAt > b.startedAt ? a : b));
  const { name } = latest.environment.device;
  return {
    title: 'Transformer training, end to end',
    subtitle: name,
    createdAt: latest.startedAt,
    summary: e2eSummary(measurements),
    environment: environmentFacts(latest),
    sections: [timeSection(measurements), ...plotSections(measurements)],
  };
}

function timeSection(measurements: readonly E2eMeasurement[]): Section {
  const phases = phaseTable(measurements);
  return {
    id: 'times',
    title: 'Times',
    text: [
      'Each step begins and ends with an idle device. Beside each time stands its floor: for each phase the ' +
        'larger of FLOPs over the measured matrix-product ceiling and bytes over the measured copy bandwidth.',
    ],
    blocks: [timeTable(measurements), ...warnings(measurements), ...(phases ? [phases] : [])],
  };
}

function plotSections(measurements: readonly E2eMeasurement[]): Section[] {
  const plots = e2ePlots(measurements);
  return plots.length === 0 ? [] : [{ id: 'plots', title: 'Plots', blocks: plots }];
}

function warnings(measurements: readonly E2eMeasurement[]): Block[] {
  const wide = measurements.filter(({ measured }) => measured && spreadIsWide(measured));
  const peers = measurements.filter(({ measured }) => {
    const status = measured?.result.peer?.status;
    return status !== undefined && status !== 'ok';
  });
  const name = ({ cell }: E2eMeasurement) => `${cell.size} ${cell.mode} at context ${cell.context}`;
  return [
    ...(wide.length > 0
      ? [
          warning(
            `The spread is wide (standard deviation over 5 % of the mean) for: ${wide.map(name).join('; ')}.`,
          ),
        ]
      : []),
    ...(peers.length > 0 ? [warning(`PyTorch could not run: ${peers.map(name).join('; ')}.`)] : []),
  ];
}

function warning(text: string): Block {
  return { kind: 'note', tone: 'warning', text };
}
