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
