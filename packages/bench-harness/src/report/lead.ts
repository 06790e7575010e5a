import type { Drawing } from '@roofline/reports';
import { ratioCharts, ratioRange, ratiosOf, type ComparedCell, type Comparison } from './ratio-chart.ts';

/** What a report begins with: what was found, and the chart that shows it. */
export interface Lead {
  /** The title of a report of its own; without it that of the benchmark. */
  readonly claim?: string;
  /** Above all sections. */
  readonly chart?: Drawing;
}

/**
 * How much of theirs ours takes, case by case, and what is claimed of the ratios' range; null where no case has both, and
 * without a chart where only one has.
 */
export function ratioLead(
  comparison: Omit<Comparison, 'id'>,
  cases: readonly ComparedCell[],
  claimOf: (range: string) => string,
): Lead | null {
  const ratios = ratiosOf(cases);
  if (ratios.length === 0) return null;
  const [chart] = ratioCharts({ ...comparison, id: 'at-a-glance' }, cases);
  return { claim: claimOf(ratioRange(ratios)), ...(chart && { chart }) };
}
