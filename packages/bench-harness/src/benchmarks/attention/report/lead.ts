import { ratioOfMedians } from '../../../measuring/statistics.ts';
import { ratioLead, type Lead } from '../../../report/lead.ts';
import { pairsBy } from '../../../report/measurement.ts';
import type { ComparedCell } from '../../../report/ratio-chart.ts';
import { attentionParameters } from '../parameters.ts';
import { timeOf, type AttentionMeasurement } from './measured.ts';

type Cells = readonly AttentionMeasurement[];

/** The head dimension of most models; a page leads with it where it was measured. */
const USUAL_DIMENSION = 64;

/** Flash attention over plain, forward and backward, at one head dimension, compiled where that was measured. */
function besidePlain(cells: Cells): ComparedCell[] {
  const pairs = pairsBy(cells, 'attention', 'plain').filter(({ cell }) => cell.cell.attention === 'flash');
  const dimensions = new Set(pairs.map(({ cell }) => cell.cell.headDimension));
  const dimension = dimensions.has(USUAL_DIMENSION) ? USUAL_DIMENSION : [...dimensions][0];
  const isCompiled = pairs.some(({ cell }) => cell.cell.execution === 'compiled');
  return pairs
    .filter(({ cell: { cell } }) => cell.headDimension === dimension)
    .filter(({ cell: { cell } }) => !isCompiled || cell.execution === 'compiled')
    .map(({ cell: flash, beside: plain }) => {
      const [ours, theirs] = [timeOf(flash, 'both')!, timeOf(plain, 'both')!];
      return {
        ...{ cell: flash.cell, ours: ours.time.median, theirs: theirs.time.median },
        ratio: ratioOfMedians(ours.samplesMs, theirs.samplesMs),
      };
    });
}

/** Null where only one of the two was measured. */
export function lead(cells: Cells): Lead | null {
  const cases = besidePlain(cells);
  return ratioLead(
    {
      title: 'Flash vs plain attention, forward and backward',
      caption: 'Median time of flash attention over that of plain, both of ours.',
      ...{ ours: 'Flash', theirs: 'Plain', parameters: attentionParameters },
      named: ['sequence', 'dtype', 'batch'],
    },
    cases,
    (range) => `Flash attention takes ${range} of the time of plain attention`,
  );
}
