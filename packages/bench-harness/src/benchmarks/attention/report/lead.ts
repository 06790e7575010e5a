import type { RatioPlot } from '@roofline/reports';
import { ratioOfMedians } from '../../../measuring/statistics.ts';
import { pairsBy, workedOut } from '../../../report/measurement.ts';
import { ratioCharts, ratioRange, ratiosOf, type ComparedCell } from '../../../report/ratio-chart.ts';
import { attentionParameters } from '../parameters.ts';
import { timeOf, type AttentionMeasurement } from './measured.ts';

type Cells = readonly AttentionMeasurement[];

/** The head dimension of most models; a page leads with it where it was measured. */
const USUAL_DIMENSION = 64;

/** Flash attention over plain, forward and backward, at one head dimension, compiled where that was measured. */
const besidePlain = workedOut((cells: Cells): ComparedCell[] => {
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
        ...{ cell: flash.cell, oursMs: ours.time.median, theirsMs: theirs.time.median },
        ratio: ratioOfMedians(ours.samplesMs, theirs.samplesMs),
      };
    });
});

/** What a page begins with; null where only one of the two was measured. */
export function leadChart(cells: Cells): RatioPlot | null {
  const cases = besidePlain(cells);
  const [chart] = ratioCharts(
    {
      ...{ id: 'at-a-glance', title: 'Flash beside plain attention, forward and backward' },
      caption: `Median time of flash attention over that of plain, both of ours; head dimension ${String(cases[0]?.cell['headDimension'])}.`,
      ...{ ours: 'Flash', theirs: 'Plain', parameters: attentionParameters },
      named: ['sequence', 'dtype', 'batch'],
    },
    cases,
  );
  return chart ?? null;
}

export function claim(cells: Cells): string | null {
  const ratios = ratiosOf(besidePlain(cells));
  return ratios.length === 0
    ? null
    : `Flash attention takes ${ratioRange(ratios)} of the time of plain attention`;
}
