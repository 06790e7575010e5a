import { formatNumber, formatPercent, formatRatio } from '@roofline/reports';
import { cellWords } from '../../../parameters/cell-names.ts';
import { pairsBy } from '../../../report/measurement.ts';
import { ratioRange } from '../../../report/ratio-chart.ts';
import { listSome, valuesInWords } from '../../../report/values-in-words.ts';
import { lossParameters, toyTensors } from '../parameters.ts';
import { precisionFindings } from '../../e2e/report/findings.ts';
import { cellsOf, measuredIn, modelNames, type PrecisionCells } from './measured.ts';
import { formatSum, gradientRatio } from './tables.ts';

/** An output that is off by as much says nothing of its input. */
const LOST = 0.5;

export function accumulationFinding(cells: PrecisionCells): string[] {
  return measuredIn('accumulation', cells).flatMap(({ result }) => {
    const sum = (experiment: string) => result.sums.find((each) => each.experiment === experiment)?.sum;
    const [low, high] = [sum('float16 += float16'), sum('float32 += float16')];
    if (low === undefined || high === undefined) return [];
    return [
      `A thousand times 0.01 is **${formatSum(low)}** summed in float16, and **${formatSum(high)}** summed in ` +
        'float32 from the same float16 addends.',
    ];
  });
}

export function dtypeFinding(cells: PrecisionCells): string[] {
  const compared = measuredIn('dtypes', cells).flatMap(({ cell: { dtype }, result: { ours, torch } }) =>
    torch ? [{ dtype, ours, torch }] : [],
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

/** From which magnitude on the output is lost, and how far off it is elsewhere. */
export function normFinding(cells: PrecisionCells): string[] {
  return measuredIn('norms', cells).map(({ cell, result: { errors } }) => {
    const outputs = errors.filter(({ part }) => part === 'output');
    const lost = outputs.filter(({ offBy }) => Number.isNaN(offBy) || offBy > LOST);
    const kept = outputs.filter((each) => !lost.includes(each)).map(({ offBy }) => offBy);
    const at = [...new Set(lost.map(({ magnitude }) => formatNumber(magnitude, 1)))].join(', ');
    const words = [
      ...(kept.length > 0 ? [`is off by at most **${formatPercent(Math.max(...kept))}**`] : []),
      ...(at === '' ? [] : [`is lost for inputs of ${at}`]),
    ];
    return `Calculated in ${cell.dtype} alone the output of norms ${words.join(', and ')}.`;
  });
}

export function accuracyFinding(cells: PrecisionCells): string[] {
  const measured = measuredIn('accuracy', cells);
  const names = modelNames(measured, ['dtype']);
  const ratios = measured.map(({ cell, result }) => ({
    name: names.name(cell),
    value: gradientRatio(result),
  }));
  if (ratios.length === 0) return [];
  return [
    `The gradients' distance from float64's, over that of PyTorch under the same autocast, is ${valuesInWords(ratios, formatRatio)}.`,
  ];
}

/** What each precision gains. */
export const speedFindings = (cells: PrecisionCells) => precisionFindings(cellsOf('speed', cells));

/** The peak memory of lower precisions, compared with float32. */
export function memoryFinding(cells: PrecisionCells): string[] {
  const pairs = pairsBy(cellsOf('speed', cells), 'dtype', 'float32');
  const ratios = pairs.map(({ cell, beside }) => cell.peakBytes! / beside.peakBytes!);
  if (ratios.length === 0) return [];
  return [`Peak memory under autocast is **${ratioRange(ratios)}** of that in float32.`];
}

export function lossFinding(cells: PrecisionCells): string[] {
  const ends = measuredIn('loss', cells).flatMap(({ cell, result }) => {
    const last = result.losses.at(-1);
    const way = cellWords(lossParameters, cell).join(', ');
    return last === undefined ? [] : [`${last.toFixed(4)} in \`${way}\``];
  });
  return ends.length === 0 ? [] : [`The overfitting example ends at a loss of ${ends.join(', ')}.`];
}
