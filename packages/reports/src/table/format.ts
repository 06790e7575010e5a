import { digits as digitCount, numberForm } from '../check/check-model.ts';
import { number, requireThat } from '../check/checks.ts';
import { type NumberForm, measuredText, numberText, uncertainText } from './number-text.ts';

// Numbers as people read them, the same in every locale. Each throws a ReportError for what is not a number, for digits
// other than whole numbers from 1 to 100, and for a unit that does not exist.

/**
 * `value` to `digits` significant digits, never rounding away a digit before the decimal point; thousands are
 * parted by commas from 10,000 on. An integer below 10¹⁵ stays whole unless `digits` is given. What is below 0.0001
 * has an exponent, and what is 10¹⁵ or more.
 */
export function formatNumber(value: number, digits?: number): string {
  requireThat('formatNumber', 'the value', value, number);
  requireThat('formatNumber', 'digits', digits, digitCount);
  return numberText(value, digits);
}

/** Milliseconds as `1.23 ms`, or in the unit given (`s`, `ms`, `µs`, `ns`). */
export function formatDuration(durationMs: number, digits?: number, unit?: string): string {
  return measured('formatDuration', durationMs, { kind: 'duration', digits, unit });
}

/** Bytes as `1.50 GiB`, or in the unit given (`B`, `KiB`, `MiB`, `GiB`, `TiB`). */
export function formatBytes(byteLength: number, digits?: number, unit?: string): string {
  return measured('formatBytes', byteLength, { kind: 'bytes', digits, unit });
}

/** A fraction of one as `58.2 %`, `0.79 %`, `<0.01 %`: three significant digits, but at most two decimals. */
export function formatPercent(fraction: number, digits?: number): string {
  return measured('formatPercent', fraction, { kind: 'percent', digits });
}

/** A factor as `0.58×`, `1.02×`, `12.3×`: two significant digits below one, three above. */
export function formatRatio(factor: number, digits?: number): string {
  return measured('formatRatio', factor, { kind: 'ratio', digits });
}

/**
 * `value ± deviation`: the deviation to one significant digit (two if it begins with a 1), the value to the same
 * place.
 */
export function formatUncertain(value: number, deviation: number, digits?: number): string {
  requireThat('formatUncertain', 'the value', value, number);
  requireThat('formatUncertain', 'the deviation', deviation, number);
  requireThat('formatUncertain', 'digits', digits, digitCount);
  return uncertainText(value, deviation, digits);
}

/** A number of a column, with its unit where the heading does not say it. */
export function formatMeasured(value: number, column: NumberForm, deviation?: number): string {
  return measured('formatMeasured', value, column, deviation);
}

function measured(owner: string, value: number, form: NumberForm, deviation?: number): string {
  requireThat(owner, 'the value', value, number);
  requireThat(owner, 'column', form, numberForm);
  requireThat(owner, 'the deviation', deviation, number.optional());
  return measuredText(value, form, deviation);
}
