import { formatRatio, type Block, type Plot, type Report, type Section } from '@roofline/reports';
import { geometricMean } from 'simple-statistics';
import type { CellRecord } from '../records/record.ts';
import { environmentFacts } from '../report/environment-facts.ts';
import { measurementsOf, speedsOf } from './measurements.ts';
import { accumulationTable, accuracyTable, dtypeTable, formatSum, lossTable, speedTable } from './tables.ts';

/** The report of the records of one device and one set of settings. */
export function precisionReport(records: readonly CellRecord[]): Report {
  const latest = records.reduce((a, b) => (a.startedAt > b.startedAt ? a : b));
  return {
    title: 'Mixed precision',
    subtitle: latest.environment.device.name,
    createdAt: latest.startedAt,
    summary: [...accumulationSentence(records), ...speedSentences(records), ...lossSentence(records)],
    environment: environmentFacts(latest),
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
    ...(measurementsOf('dtypes', records).length > 0
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
      ...speedPlot(records),
    ]),
    ...section(
      'loss',
      'Loss',
      'The same training in each precision; float16 with dynamic loss scaling.',
      loss,
    ),
  ];
}

function lossPlot(records: readonly CellRecord[]): Plot {
  return {
    kind: 'plot',
    id: 'loss-curves',
    title: 'Loss of the overfitting example',
    x: { label: 'Step', scale: 'linear' },
    y: { label: 'Loss', unit: 'nats', scale: 'log' },
    marks: 'line',
    series: measurementsOf('loss', records).map(({ cell: { dtype }, result }) => ({
      name: dtype,
      points: (result?.losses ?? []).map((loss, x) => ({ x, y: Number.isFinite(loss) ? loss : null })),
    })),
  };
}

function speedPlot(records: readonly CellRecord[]): Plot[] {
  const low = speedsOf(records).filter(({ cell, speedUp }) => cell.dtype !== 'float32' && speedUp !== null);
  if (low.length === 0) return [];
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
          .map(({ cell, speedUp }) => ({ x: `${cell.size}, ${cell.context}`, y: speedUp })),
      })),
    },
  ];
}

function accumulationSentence(records: readonly CellRecord[]): string[] {
  return measurementsOf('accumulation', records).flatMap(({ result }) => {
    const sum = (experiment: string) => result?.sums.find((each) => each.experiment === experiment)?.sum;
    const [low, high] = [sum('float16 += float16'), sum('float32 += float16')];
    if (low === undefined || high === undefined) return [];
    return [
      `A thousand times 0.01 is **${formatSum(low)}** summed in float16, and **${formatSum(high)}** summed in ` +
        'float32 from the same float16 addends.',
    ];
  });
}

/** One sentence a precision: for each mode the geometric mean over all sizes, and where it is least and most. */
function speedSentences(records: readonly CellRecord[]): string[] {
  const low = speedsOf(records).flatMap(({ cell, speedUp }) =>
    cell.dtype === 'float32' || speedUp === null ? [] : [{ ...cell, speedUp }],
  );
  return [...Map.groupBy(low, ({ dtype }) => dtype)].map(([dtype, group]) => {
    const modes = [...Map.groupBy(group, ({ mode }) => mode)].map(([mode, cells]) => {
      const mean = geometricMean(cells.map(({ speedUp }) => speedUp));
      return `\`${mode}\` at **${formatRatio(mean)}**${extremes(cells)}`;
    });
    const average = group.length > modes.length ? ', in the geometric mean over the sizes' : '';
    return `\`${dtype}\` runs ${modes.join(', ')} the speed of float32${average}.`;
  });
}

function extremes(cells: readonly { size: string; context: number; speedUp: number }[]): string {
  if (cells.length === 1) return '';
  const ordered = cells.toSorted((a, b) => a.speedUp - b.speedUp);
  const [least, most] = [ordered[0]!, ordered.at(-1)!];
  const at = ({ size, context, speedUp }: typeof least) =>
    `${formatRatio(speedUp)} for ${size} at ${context}`;
  return ` (${at(least)}, ${at(most)})`;
}

function lossSentence(records: readonly CellRecord[]): string[] {
  const ends = measurementsOf('loss', records).flatMap(({ cell, result }) => {
    const last = result?.losses.at(-1);
    return last === undefined ? [] : [`${last.toFixed(4)} in \`${cell.dtype}\``];
  });
  return ends.length === 0 ? [] : [`The overfitting example ends at a loss of ${ends.join(', ')}.`];
}
