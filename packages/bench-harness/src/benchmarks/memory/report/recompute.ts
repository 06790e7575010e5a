import { formatBytes, formatRatio, type Plot, type Table } from '@roofline/reports';
import { summarize } from '../../../measuring/statistics.ts';
import { policyOf } from '../../../memory-saving/kinds.ts';
import { tablesOf, type ColumnOf } from '../../../report/declared-table.ts';
import { measuredOf, pairsBy } from '../../../report/measurement.ts';
import { plotsOf, seriesOf } from '../../../report/series.ts';
import { column } from '../../../report/standard-columns.ts';
import { stepNames, stepParameters } from '../../e2e/parameters.ts';
import type { MeasuredMemory, MemoryMeasurement } from './tables.ts';

type Cells = readonly MemoryMeasurement[];

const FLOAT32_BYTES = 4;

/** A step, and the same where nothing is made again. */
interface Compared extends MeasuredMemory {
  readonly beside: MeasuredMemory;
}

/** The steps of each study: those that make something again, and before them what they are compared with. */
function comparedOf(cells: Cells): Compared[] {
  const pairs = pairsBy(cells, 'recompute', 'none')
    .filter(({ cell: { cell } }) => cell.mode !== 'forward')
    .map(({ cell, beside }) => ({ ...cell, beside }));
  const references = new Set(pairs.map(({ beside }) => beside.record));
  const plain = measuredOf(cells).filter(({ record }) => references.has(record));
  return [...plain.map((each) => ({ ...each, beside: each })), ...pairs];
}

const timeOf = ({ result }: MeasuredMemory): number => summarize(result.overhead.offMs).median;

/**
 * What a model's blocks keep for the backward pass, from a step that keeps all: of each its input, its attention, and everything.
 * Null where the tape was not seen, as in compiled steps.
 */
function blockBytesOf({ cell, result }: MeasuredMemory) {
  if (!result.savedByBlock) return null;
  const { layers, modelDimension } = cell.shape;
  const bytes = cell.dtype === 'float32' ? FLOAT32_BYTES : FLOAT32_BYTES / 2;
  const attention = cell.batch * cell.context * modelDimension * bytes;
  return { layers, input: result.residual.bytes, attention, all: result.savedByBlock.bytes };
}
type BlockBytes = NonNullable<ReturnType<typeof blockBytesOf>>;

/** The most that blocks keep at a time: inputs of those still to come, and all of those that are made again (Chen et al. 2016). */
export function predictedKeptBytes(recompute: string, { layers, input, attention, all }: BlockBytes): number {
  const policy = policyOf(recompute);
  if (typeof policy === 'number') {
    const together = Math.min(policy, layers);
    return Math.ceil(layers / together) * input + together * all;
  }
  if (policy === 'block') return layers * input + all;
  if (policy === 'attention-kept') return layers * (input + attention) + all;
  if (policy === 'recursive') return Math.ceil(Math.log2(layers)) * input + all;
  return layers * all;
}

/** How many blocks made again together keep the least: √(layers · input / all), which is √layers where a block keeps only its input. */
export function bestGroup({ layers, input, all }: BlockBytes): number {
  return Math.min(layers, Math.max(1, Math.round(Math.sqrt((layers * input) / all))));
}

/**
 * The peak of the step that keeps all, with what its blocks keep replaced: for steps whose peak is in their blocks, not at the loss. No
 * policy takes less than what is there once the backward pass has made all gradients.
 */
function predictedPeakBytes({ cell, beside }: Compared): number | null {
  const blocks = blockBytesOf(beside);
  if (!blocks) return null;
  const less = predictedKeptBytes('none', blocks) - predictedKeptBytes(cell.recompute, blocks);
  const { weightBytes, otherHeldBytes, parameterCount } = beside.result;
  return Math.max(beside.peakBytes! - less, weightBytes + otherHeldBytes + FLOAT32_BYTES * parameterCount);
}

/** What the gradients of one block take. */
function blockGradientBytes({ cell: { shape } }: MeasuredMemory): number {
  const { modelDimension: d, feedForwardDimension: hidden } = shape;
  return FLOAT32_BYTES * (4 * d * d + 3 * d * hidden + 2 * d);
}

const held = { unitGroup: 'held', shown: 'filled' } as const;
const columns: readonly ColumnOf<Compared>[] = [
  column.bytes('peakBytes', 'Peak', {
    ...{ ...held, emphasis: 'strong', description: 'Most bytes allocated at once.' },
  }),
  column.bytes('predictedBytes', 'Predicted', predictedPeakBytes, {
    ...{
      ...held,
      description:
        'From what a block keeps where nothing is made again; at least what is there with all gradients.',
    },
  }),
  column.ratio('peakRatio', 'Peak / none', ({ peakBytes, beside }) => peakBytes! / beside.peakBytes!, {
    shown: 'filled',
  }),
  column.ratio('timeRatio', 'Time / none', (each) => timeOf(each) / timeOf(each.beside), { shown: 'filled' }),
  column.bytes('savedBytes', 'Saved for backward', ({ result }) => result.savedBytes, {
    ...{ ...held, description: 'What the tape keeps of the activations between the passes.' },
  }),
  column.bytes('gradientBytes', 'Gradients of a block', blockGradientBytes, {
    ...{ unitGroup: 'gradients', shown: 'filled' },
  }),
];

/** Steps that recompute something, compared with the one that does not. */
export function recomputeTable(cells: Cells): Table[] {
  const compared = comparedOf(cells);
  if (compared.length === 0) return [];
  return tablesOf(
    { ...{ id: 'made-again', title: 'What is made again' }, parameters: stepParameters, columns },
    compared,
  );
}

/** Time against peak: one point a policy, and what is predicted of it. */
export function recomputePlot(cells: Cells): Plot[] {
  const compared = comparedOf(cells);
  const highest = Math.max(...compared.map(({ peakBytes }) => peakBytes!));
  const [unit, bytes] = highest < 2 ** 30 ? ['MiB', 2 ** 20] : ['GiB', 2 ** 30];
  const names = stepNames(compared);
  const inUnit = (value: number | null) => value && value / Number(bytes);
  const points = (label: (each: Compared) => string, y: (each: Compared) => number | null) =>
    seriesOf({ name: label, x: timeOf, y: (each) => inUnit(y(each)) }, compared);
  return plotsOf({
    ...{ id: 'recompute-peak', title: 'Time of a step against its peak', marks: 'dot' },
    ...(names.shared !== '' && { caption: `All: ${names.shared}.` }),
    x: { label: 'Time of a step', unit: 'ms', scale: 'linear' },
    y: { label: 'Peak allocated', unit: String(unit), scale: 'linear' },
    series: [
      ...points(
        ({ cell }) => names.name(cell),
        ({ peakBytes }) => peakBytes,
      ),
      ...points(() => 'predicted', predictedPeakBytes),
    ],
  });
}

/** The policy that takes the least memory, what it costs, and which group of blocks theory would take. */
export function recomputeFinding(cells: Cells): string[] {
  const pairs = comparedOf(cells).filter(({ cell }) => cell.recompute !== 'none');
  const [least] = pairs.toSorted(
    (a, b) => a.peakBytes! / a.beside.peakBytes! - b.peakBytes! / b.beside.peakBytes!,
  );
  if (!least) return [];
  const { cell, peakBytes, beside } = least;
  const found =
    `Least memory takes \`--recompute ${cell.recompute}\`: a peak of **${formatBytes(peakBytes!)}** in place of ` +
    `${formatBytes(beside.peakBytes!)}, at ${formatRatio(timeOf(least) / timeOf(beside))} the time (${stepNames(cells).name(cell)}).`;
  const blocks = blockBytesOf(beside);
  if (!blocks) return [found];
  const group = bestGroup(blocks);
  const kept = formatBytes(predictedKeptBytes(String(group), blocks));
  return [
    `${found} Of ${blocks.layers} blocks that keep ${formatBytes(blocks.all)} each and have inputs of ` +
      `${formatBytes(blocks.input)}, groups of ${group} would keep the least, ${kept} at a time.`,
  ];
}
