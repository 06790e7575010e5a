import { formatRatio, type RatioPlot, type RatioRow } from '@roofline/reports';
import type { RatioEstimate } from '../measuring/statistics.ts';
import { errorBarOf } from '../measuring/statistics.ts';
import { isPlain, titleOf, valueInWords, type Parameters } from '../parameters/parameter.ts';
import { rangeInWords } from './values-in-words.ts';
import { cellNames, isSwept, type AnyCell } from '../parameters/cell-names.ts';
import type { Json } from '../records/json.ts';

/** A case of a comparison: a cell, what both sides take, and the ratio of that. */
export interface ComparedCell {
  readonly cell: AnyCell;
  /** Milliseconds, or whatever is compared; null where there is none. */
  readonly ours: number | null;
  readonly theirs: number | null;
  readonly ratio?: RatioEstimate;
  /** Why there is none. */
  readonly note?: string;
}

/** What is compared, and how it is named. */
export interface Comparison extends Pick<RatioPlot, 'id' | 'title' | 'ours' | 'theirs'> {
  /** What all cells share is said after it. */
  readonly caption?: string;
  /** Default: `duration`. */
  readonly value?: RatioPlot['value'];
  readonly parameters: Parameters;
  /** The parameters that may name a row, in order; those that are not swept are left out, but for the first. */
  readonly named: readonly string[];
}

/** How much of another's time ours takes, case by case; none where fewer than two cases have both. */
export function ratioCharts(
  { parameters, named, caption, ...plot }: Comparison,
  cases: readonly ComparedCell[],
): RatioPlot[] {
  if (ratiosOf(cases).length < 2) return [];
  const cells = cases.map(({ cell }) => cell);
  const swept = named.filter((key) => isSwept(key, cells));
  const keys = swept.length > 0 ? swept : named.slice(0, 1);
  const { shared } = cellNames(parameters, cells);
  const captions = [caption, shared && `All: ${shared}.`].filter(Boolean);
  return [
    {
      ...{ kind: 'ratios', value: 'duration', ...plot },
      ...(captions.length > 0 && { caption: captions.join(' ') }),
      heads: keys.map((key) => titleOf(key, parameters[key]!)),
      rows: inOrder(cases, keys).map(({ cell, ours, theirs, ratio, note }): RatioRow => ({
        names: keys.map((key) => nameOf(parameters, cell, key)),
        ...{ ours: positive(ours), theirs: positive(theirs) },
        ...(ratio && errorBarOf(ratio)),
        ...(note !== undefined && { note }),
      })),
    },
  ];
}

/** By the first key, then the second and so on: numbers ascending, words as they first appear. */
function inOrder(cases: readonly ComparedCell[], keys: readonly string[]): ComparedCell[] {
  const ranks = keys.map((key) => {
    const values = [...new Set(cases.map(({ cell }) => cell[key]))];
    if (values.every((value) => typeof value === 'number')) values.sort((a, b) => a - b);
    return new Map(values.map((value, rank) => [value, rank]));
  });
  const rank = ({ cell }: ComparedCell, index: number) => ranks[index]!.get(cell[keys[index]!])!;
  return cases.toSorted((a, b) =>
    keys.reduce((order, _, index) => order || rank(a, index) - rank(b, index), 0),
  );
}

/** The value alone, since a head names its parameter. */
function nameOf(parameters: Parameters, cell: AnyCell, key: string): string {
  const value = cell[key];
  if (!isPlain(value)) return '';
  const { words, shown } = parameters[key]!;
  if (shown) return shown.text(value as never);
  if (typeof value === 'number') return String(value);
  return words ? valueInWords(key, parameters[key]!, value as Json) : String(value);
}

/** `0.62× to 0.85×`, or `0.62×` where all are the same. */
export function ratioRange(ratios: readonly number[]): string {
  return rangeInWords(ratios, formatRatio);
}

/** Of what is 0, or diverged, there is no ratio. */
function positive(value: number | null): number | null {
  return value !== null && value > 0 && Number.isFinite(value) ? value : null;
}

/** The ratios of the cases that both sides measured. */
export function ratiosOf(cases: readonly ComparedCell[]): number[] {
  return cases.flatMap(({ ours, theirs }) => {
    const [above, below] = [positive(ours), positive(theirs)];
    return above === null || below === null ? [] : [above / below];
  });
}
