import type { Plot } from '@roofline/reports';
import { cellWords } from '../../../parameters/cell-names.ts';
import { plotsOf, seriesOf } from '../../../report/series.ts';
import { lossParameters } from '../parameters.ts';
import { measuredIn, modelNames, speedsOf, type PrecisionCells } from './measured.ts';

export function lossPlot(cells: PrecisionCells): Plot[] {
  return plotsOf({
    ...{ id: 'loss-curves', title: 'Loss of the overfitting example', marks: 'line' },
    x: { label: 'Step', scale: 'linear' },
    y: { label: 'Loss', unit: 'nats', scale: 'log' },
    series: measuredIn('loss', cells).map(({ cell, result }) => ({
      name: cellWords(lossParameters, cell).join(', '),
      // A loss that diverged, or that is 0, has no place on a logarithm.
      points: result.losses.map((loss, x) => ({ x, y: loss > 0 && Number.isFinite(loss) ? loss : null })),
    })),
  });
}

/** The output of each norm, calculated in the dtype alone: where the line ends a value overflows. */
export function normPlot(cells: PrecisionCells): Plot[] {
  const outputs = measuredIn('norms', cells).flatMap(({ record, cell, result }) =>
    result.errors
      .filter(({ part }) => part === 'output' || part === 'statistics')
      .map((each) => ({ record, cell, ...each, dtype: cell.dtype })),
  );
  return plotsOf({
    ...{ id: 'norm-errors', title: 'Error of norms by magnitude of the input', marks: 'line' },
    caption: 'Each op in the dtype alone; relative to float64.',
    x: { label: 'Mean and standard deviation of the input', scale: 'log' },
    y: { label: 'Relative error', scale: 'log' },
    series: seriesOf(
      {
        name: ({ norm, part, dtype }) => `${norm}, ${part}, ${dtype}`,
        x: ({ magnitude }) => magnitude,
        y: ({ offBy }) => (offBy > 0 ? offBy : null),
      },
      outputs,
    ),
  });
}

export function speedPlot(cells: PrecisionCells): Plot[] {
  const low = speedsOf(cells).filter(({ cell, speedUp }) => cell.dtype !== 'float32' && speedUp !== null);
  const names = modelNames(low);
  return plotsOf({
    ...{ id: 'speed-ups', title: 'Speed-up over float32', marks: 'bar' },
    x: { label: 'Model', scale: 'category' },
    y: { label: 'Speed-up', scale: 'linear' },
    references: [{ label: 'float32', y: 1 }],
    series: seriesOf(
      {
        name: ({ cell }) => `${cell.mode}, ${cell.dtype}`,
        x: ({ cell }) => names.name(cell),
        y: ({ speedUp }) => speedUp,
      },
      low,
    ),
  });
}
