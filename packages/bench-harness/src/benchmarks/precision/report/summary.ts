import { formatRatio } from '@roofline/reports';
import { sizeName } from '../../e2e/parameters.ts';
import { logAverage } from 'simple-statistics';
import type { CellRecord } from '../../../records/record.ts';
import { listSome, valuesInWords } from '../../../report/values-in-words.ts';
import { measurementsOf, speedsOf, sweptWords } from './measurements.ts';
import { lossWords, toyTensors, type AccuracyCell } from '../parameters.ts';
import { formatSum } from './tables.ts';

/** What the studies found, one sentence a finding. */
export function precisionSummary(records: readonly CellRecord[]): string[] {
  return [
    ...accumulationSentence(records),
    ...dtypeSentence(records),
    ...accuracySentence(records),
    ...speedSentences(records),
    ...lossSentence(records),
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

function dtypeSentence(records: readonly CellRecord[]): string[] {
  const compared = measurementsOf('dtypes', records).flatMap(({ cell: { dtype }, result }) =>
    result?.torch ? [{ dtype, ours: result.ours, torch: result.torch }] : [],
  );
  if (compared.length === 0) return [];
  const unlike = compared.flatMap(({ dtype, ours, torch }) =>
    toyTensors
      .filter((tensor) => ours[tensor] !== torch[tensor])
      .map((tensor) => `${tensor} under ${dtype} is ${ours[tensor]} and not ${torch[tensor]}`),
  );
  const dtypes = compared.map(({ dtype }) => dtype).join(' and ');
  return [
    unlike.length === 0
      ? `Autocast to ${dtypes} gives all ${toyTensors.length} tensors of the toy model PyTorch's dtypes.`
      : `Autocast departs from PyTorch's dtypes in the toy model: ${listSome(unlike)}.`,
  ];
}

function accuracySentence(records: readonly CellRecord[]): string[] {
  const measurements = measurementsOf('accuracy', records);
  const words = sweptWords(
    measurements.map(({ cell }) => cell),
    ['context', 'batch'],
  );
  const name = (cell: AccuracyCell) => [sizeName(cell), ...words(cell), cell.dtype].join(', ');
  const ratios = measurements.flatMap(({ cell, result }) =>
    result ? [{ name: name(cell), value: result.ours.gradients / result.theirs.gradients }] : [],
  );
  if (ratios.length === 0) return [];
  return [
    `Against float64 the gradients' error is ${valuesInWords(ratios, formatRatio)} that of PyTorch under the same autocast.`,
  ];
}

/** One sentence a precision: for each mode the geometric mean over all sizes, and where it is least and most. */
function speedSentences(records: readonly CellRecord[]): string[] {
  const low = speedsOf(records).flatMap(({ cell, speedUp }) =>
    cell.dtype === 'float32' || speedUp === null ? [] : [{ ...cell, size: sizeName(cell), speedUp }],
  );
  return [...Map.groupBy(low, ({ dtype }) => dtype)].map(([dtype, group]) => {
    const modes = [...Map.groupBy(group, ({ mode }) => mode)].map(([mode, cells]) => {
      const mean = logAverage(cells.map(({ speedUp }) => speedUp));
      return `\`${mode}\` at **${formatRatio(mean)}**${extremes(cells)}`;
    });
    const average = group.length > modes.length ? ', in the geometric mean over the sizes' : '';
    return `\`${dtype}\` runs ${modes.join(', ')} the speed of float32${average}.`;
  });
}

function extremes(
  cells: readonly { size: string; context: number; batch: number; speedUp: number }[],
): string {
  if (cells.length === 1) return '';
  const words = sweptWords(cells, ['batch']);
  const ordered = cells.toSorted((a, b) => a.speedUp - b.speedUp);
  const [least, most] = [ordered[0]!, ordered.at(-1)!];
  const at = (cell: typeof least) =>
    `${formatRatio(cell.speedUp)} for ${[`${cell.size} at ${cell.context}`, ...words(cell)].join(', ')}`;
  return ` (${at(least)}, ${at(most)})`;
}

function lossSentence(records: readonly CellRecord[]): string[] {
  const ends = measurementsOf('loss', records).flatMap(({ cell, result }) => {
    const last = result?.losses.at(-1);
    return last === undefined ? [] : [`${last.toFixed(4)} in \`${lossWords(cell).join(', ')}\``];
  });
  return ends.length === 0 ? [] : [`The overfitting example ends at a loss of ${ends.join(', ')}.`];
}
