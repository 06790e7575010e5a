import {
  formatBytes,
  formatDuration,
  formatNumber,
  formatPercent,
  formatRatio,
  type Column,
} from '@roofline/reports';
import { logAverage } from 'simple-statistics';

/** What was found for one cell. */
export interface NamedValue {
  readonly name: string;
  readonly value: number;
}

/**
 * Values in the order of their cells' work, in words: one alone as `**55.0 %**`; several as
 * `**55.0 %** for small to **3.62 %** for xl`, which are the first and the last where all between them lie on the
 * way, and the least and the most where they do not; and as `**55.0 %** for small to xl` where all are the same.
 */
export function valuesInWords(values: readonly NamedValue[], format: (value: number) => string): string {
  const [first, last] = [values[0]!, values.at(-1)!];
  const text = ({ name, value }: NamedValue) => `**${format(value)}** for ${name}`;
  if (values.length === 1) return `**${format(first.value)}**`;
  if (new Set(values.map(({ value }) => format(value))).size === 1) return `${text(first)} to ${last.name}`;
  if (isMonotonic(values.map(({ value }) => value))) return `${text(first)} to ${text(last)}`;
  const ordered = values.toSorted((a, b) => a.value - b.value);
  return `${text(ordered[0]!)} to ${text(ordered.at(-1)!)}`;
}

function isMonotonic(values: readonly number[]): boolean {
  const steps = values.slice(1).map((value, index) => value - values[index]!);
  return steps.every((step) => step >= 0) || steps.every((step) => step <= 0);
}

/** The geometric mean of ratios, and of several the least and the most: `**0.81×** (0.70× to 1.02×)`. */
export function meanAndRange(ratios: readonly number[]): string {
  const mean = `**${formatRatio(logAverage([...ratios]))}**`;
  if (ratios.length === 1) return mean;
  return `${mean} (${formatRatio(Math.min(...ratios))} to ${formatRatio(Math.max(...ratios))})`;
}

/** The least and the most, `0.62× to 0.85×`, or one where both are written alike. */
export function rangeInWords(values: readonly number[], format: (value: number) => string): string {
  return [...new Set([Math.min(...values), Math.max(...values)].map((value) => format(value)))].join(' to ');
}

const MOST_LISTED = 4;

/** `small; xl; and 3 more`. */
export function listSome(names: readonly string[]): string {
  const rest = names.length - MOST_LISTED;
  return names.slice(0, MOST_LISTED).join('; ') + (rest > 0 ? `; and ${rest} more` : '');
}

/** `out of memory`. */
export function statusInWords(status: string): string {
  return status.replaceAll('-', ' ');
}

/** What a table has room for of a message. */
export function firstLine(message: string): string {
  return message.trim().split('\n', 1)[0]!;
}

/** A value of a table, as tables write it, with its unit. */
export function valueText(value: string | number, { kind, unit, digits }: Column): string {
  if (typeof value === 'string') return value;
  if (kind === 'ratio') return formatRatio(value);
  if (kind === 'percent') return formatPercent(value);
  if (kind === 'bytes') return formatBytes(value);
  if (kind === 'duration') return formatDuration(value);
  if (kind === 'text') return String(value);
  return [formatNumber(value, digits), unit].filter(Boolean).join(' ');
}
