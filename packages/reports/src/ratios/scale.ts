import { ReportError, type RatioPlot, type RatioRow } from '../model.ts';
import { textWidth } from '../plot/text-width.ts';
import { linearTicks, logTicks, tickTexts } from '../plot/ticks.ts';

/** Ratios so many times apart have no room on a linear axis. */
const WIDEST_LINEAR = 6;

/** Where ratios are on an axis: pixels from its left end. */
export interface RatioScale {
  at(ratio: number): number;
  readonly ticks: readonly { readonly ratio: number; readonly text: string }[];
}

/** Null for a case that is not measured on both sides. */
export function ratioOf({ ours, theirs }: RatioRow): number | null {
  return ours === null || theirs === null ? null : ours / theirs;
}

/**
 * An axis of `width` pixels on which every ratio, the ends of its interval and the line at 1 keep `inset` pixels from both
 * ends.
 *
 * @throws ReportError for a comparison without any ratio.
 */
export function ratioScale(plot: RatioPlot, width: number, inset: number): RatioScale {
  const ratios = plot.rows.flatMap((row) => {
    const ratio = ratioOf(row);
    return ratio === null ? [] : [ratio, row.low ?? ratio, row.high ?? ratio];
  });
  if (ratios.length === 0) {
    throw new ReportError(`ratios '${plot.id}': no case is measured on both sides; leave the drawing out`);
  }
  const [low, high] = [Math.min(1, ...ratios), Math.max(1, ...ratios)];
  const isLog = high / low > WIDEST_LINEAR;
  const place = isLog ? Math.log : (ratio: number) => ratio;
  const span = place(high) - place(low) || 0.1;
  const perUnit = (width - 2 * inset) / span;
  const at = (ratio: number) => inset + (place(ratio) - place(low)) * perUnit;
  const count = Math.max(2, Math.round(width / 90));
  const ticks = isLog ? logTicks(low, high, count, [low, high]) : linearTicks(low, high, count);
  const texts = tickTexts(ticks, isLog ? 'log' : 'linear');
  return {
    at,
    ticks: ticks
      .map((ratio, index) => ({ ratio, text: `${texts[index]}×` }))
      .filter(
        ({ ratio, text }) => at(ratio) >= textWidth(text) / 2 && at(ratio) <= width - textWidth(text) / 2,
      ),
  };
}
