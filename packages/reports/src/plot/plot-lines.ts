import { z } from 'zod';
import { listOf, number, optionsOf, requireThat, text } from '../check/checks.ts';
import type { Plot } from '../model.ts';

/** Options of `plotLines`. */
export interface PlotLinesOptions {
  title?: string;
  /** What runs along the axes: `Step` and `Value` unless said otherwise. */
  x?: string;
  y?: string;
}

const linesOptions = optionsOf({ title: text, x: text, y: text });
const curves = z.record(z.string(), listOf(number), 'an object of lists');

/**
 * Lists of numbers as lines, each named by its key, with their places along x: `renderSvg(plotLines({ loss }))`. What is not
 * finite, as a loss that diverged, is a gap.
 *
 * @throws ReportError for what is no lists of numbers.
 */
export function plotLines(
  lists: Readonly<Record<string, readonly number[]>>,
  options: PlotLinesOptions = {},
): Plot {
  requireThat('plotLines', 'lists', lists, curves);
  requireThat('plotLines', 'options', options, linesOptions);
  const { title = Object.keys(lists).join(', '), x = 'Step', y = 'Value' } = options;
  return {
    kind: 'plot',
    id: 'lines',
    title,
    x: { label: x },
    y: { label: y },
    series: Object.entries(lists).map(([name, values]) => ({
      name,
      points: values.map((value, step) => ({ x: step, y: Number.isFinite(value) ? value : null })),
    })),
  };
}
