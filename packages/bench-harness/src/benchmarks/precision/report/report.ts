import type { Block, Plot, Report, Section } from '@roofline/reports';
import { sizeName } from '../../e2e/parameters.ts';
import type { CellRecord } from '../../../records/record.ts';
import { peerFailures } from '../../../report/peer-failures.ts';
import { reportHead } from '../../../report/report-head.ts';
import { measurementsOf, speedsOf, sweptWords } from './measurements.ts';
import { precisionSummary } from './summary.ts';
import { lossWords } from '../parameters.ts';
import {
  accumulationTable,
  accuracyTable,
  compiledSpeedTable,
  dtypeTable,
  lossTable,
  speedTable,
} from './tables.ts';

/** The report of the records of one device and one set of settings. */
export function precisionReport(records: readonly CellRecord[]): Report {
  return {
    ...reportHead('Mixed precision', records),
    summary: precisionSummary(records),
    sections: sectionsOf(records),
  };
}

function sectionsOf(records: readonly CellRecord[]): Section[] {
  const loss = [lossPlot(records), lossTable(records)];
  const section = (id: string, title: string, prose: string, blocks: Block[]): Section[] =>
    blocks.some((block) => block.kind === 'table' && block.rows.length > 0)
      ? [{ id: `study-${id}`, title, text: [prose], blocks }]
      : [];
  return [
    ...section(
      'accumulation',
      'Accumulation',
      'What a running sum loses to the rounding of its dtype, and of what is added.',
      [accumulationTable(records)],
    ),
    ...(measurementsOf('dtypes', records).some(({ result }) => result !== null)
      ? section('dtypes', 'Dtypes', 'Autocast casts by the op: parameters and gradients stay float32.', [
          dtypeTable(records),
        ])
      : []),
    ...section(
      'accuracy',
      'Accuracy',
      'The same weights and tokens in PyTorch, in float64 and under autocast.',
      [accuracyTable(records)],
    ),
    ...section('speed', 'Speed', 'Each precision in a process of its own.', [
      speedTable(records),
      ...speedPeerFailures(records).map((text): Block => ({ kind: 'note', tone: 'warning', text })),
      ...speedPlot(records),
      ...[compiledSpeedTable(records)].filter((table) => table !== null),
    ]),
    ...section(
      'loss',
      'Loss',
      'The same training in each precision; float16 with dynamic loss scaling.',
      loss,
    ),
  ];
}

/** Why steps of PyTorch have no time to compare with ours. */
export function speedPeerFailures(records: readonly CellRecord[]): string[] {
  return peerFailures(speedsOf(records).map(({ cell, result }) => ({ cell, peer: result?.peer })));
}

function lossPlot(records: readonly CellRecord[]): Plot {
  return {
    kind: 'plot',
    id: 'loss-curves',
    title: 'Loss of the overfitting example',
    x: { label: 'Step', scale: 'linear' },
    y: { label: 'Loss', unit: 'nats', scale: 'log' },
    marks: 'line',
    series: measurementsOf('loss', records).map(({ cell, result }) => ({
      name: lossWords(cell).join(', '),
      points: (result?.losses ?? []).map((loss, x) => ({
        x,
        y: loss > 0 && Number.isFinite(loss) ? loss : null,
      })),
    })),
  };
}

function speedPlot(records: readonly CellRecord[]): Plot[] {
  const low = speedsOf(records).filter(({ cell, speedUp }) => cell.dtype !== 'float32' && speedUp !== null);
  if (low.length === 0) return [];
  const words = sweptWords(
    low.map(({ cell }) => cell),
    ['batch'],
  );
  const names = [...new Set(low.map(({ cell }) => `${cell.mode}, ${cell.dtype}`))];
  return [
    {
      kind: 'plot',
      id: 'speed-ups',
      title: 'Speed-up over float32',
      x: { label: 'Size', scale: 'category' },
      y: { label: 'Speed-up', scale: 'linear' },
      marks: 'bar',
      references: [{ label: 'float32', y: 1 }],
      series: names.map((name) => ({
        name,
        points: low
          .filter(({ cell }) => `${cell.mode}, ${cell.dtype}` === name)
          .map(({ cell, speedUp }) => ({
            x: [sizeName(cell), cell.context, ...words(cell)].join(', '),
            y: speedUp,
          })),
      })),
    },
  ];
}
