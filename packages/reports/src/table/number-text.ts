import type { Column } from '../model.ts';
import { fittingUnit, unitOf } from './units.ts';

const DEFAULT_DIGITS = 3;

/** How a column's numbers are written. */
export type NumberForm = Pick<Column, 'kind' | 'unit' | 'digits'>;

/** How the numbers of a column are written: all of them with exponents, or none. */
export type Notation = 'decimal' | 'exponent';

/** Below it, and from the other on, decimals would be longer than an exponent. */
export const LEAST_DECIMAL = 1e-4;
const LEAST_HUGE = 1e15;

/** The one notation of a column of these values: one that needs an exponent gives it to all. */
export function notationOf(values: readonly number[], form: NumberForm): Notation {
  const needsExponent = values.some((value) => {
    const shown = Math.abs(value) / shownUnit(form, value).size;
    return shown > 0 && Number.isFinite(shown) && (shown < LEAST_DECIMAL || shown >= LEAST_HUGE);
  });
  // A percent below two decimals is said to be below.
  return needsExponent && form.kind !== 'percent' ? 'exponent' : 'decimal';
}

/** See `formatNumber`; a single number has the notation that it needs. */
export function numberText(value: number, digits?: number, notation?: Notation): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '-∞';
  const significant = digits ?? DEFAULT_DIGITS;
  if (notation === 'exponent') return value === 0 ? '0' : value.toExponential(significant - 1);
  const magnitude = Math.abs(value);
  if (magnitude >= LEAST_HUGE) return value.toExponential(significant - 1);
  if (digits === undefined && Number.isInteger(value)) return fixedText(value, 0);
  if (value !== 0 && magnitude < LEAST_DECIMAL) return value.toExponential(significant - 1);
  return fixedText(value, decimalsFor(value, significant));
}

/** The share of a value below which a deviation is what rounding left of equal samples. */
const ROUNDING = 1e-12;
/** Decimals of a value with its deviation; what needs more has exponents. */
const MOST_DECIMALS = 12;

/** See `formatUncertain`. */
export function uncertainText(
  value: number,
  deviation: number,
  digits?: number,
  notation?: Notation,
): string {
  const apart = (form: Notation | undefined, shown = deviation) =>
    `${numberText(value, digits, form)} ± ${numberText(shown, undefined, form)}`;
  if (!(deviation > 0) || !Number.isFinite(value) || !Number.isFinite(deviation)) return apart(notation);
  if (deviation < Math.abs(value) * ROUNDING) return apart(notation, 0);
  if (notation === 'exponent') return apart(notation);
  if (Math.max(Math.abs(value), deviation) >= LEAST_HUGE) return apart('exponent');
  const leading = Number(deviation.toExponential(1)[0]);
  const decimals = decimalsFor(deviation, leading === 1 ? 2 : 1);
  if (decimals > MOST_DECIMALS) return apart('exponent');
  return `${fixedText(value, decimals)} ± ${fixedText(deviation, decimals)}`;
}

/** See `formatMeasured`. */
export function measuredText(
  value: number,
  form: NumberForm,
  deviation?: number,
  notation?: Notation,
): string {
  if (form.kind === 'percent' && form.digits === undefined && deviation === undefined) {
    const rounded = roundedPercent(value * 100);
    if (rounded !== undefined) return `${rounded} %`;
  }
  const { size, suffix } = shownUnit(form, value);
  const digits = form.digits ?? defaultDigits(form.kind, value);
  if (deviation !== undefined)
    return uncertainText(value / size, deviation / size, digits, notation) + suffix;
  const wholeBytes = form.kind === 'bytes' && size === 1 && Number.isInteger(value);
  return numberText(value / size, wholeBytes ? undefined : digits, notation) + suffix;
}

/** The unit that a column's heading shows; undefined where every cell carries its own, and where there is none. */
export function headingUnit(column: Pick<Column, 'kind' | 'unit'>): string | undefined {
  return column.kind === 'ratio' || column.kind === 'percent' ? undefined : column.unit;
}

/** The unit of a column's raw values, as CSV and JSON hold them. */
export function rawUnit(column: Pick<Column, 'kind' | 'unit'>): string | undefined {
  if (column.kind === 'duration') return 'ms';
  if (column.kind === 'bytes') return 'bytes';
  if (column.kind === 'percent') return 'fraction';
  return headingUnit(column);
}

/** More than two decimals of a percent say nothing; undefined for what has none or two anyway. */
function roundedPercent(percent: number): string | undefined {
  const magnitude = Math.abs(percent);
  if (magnitude >= 1 || Number.isNaN(percent)) return undefined;
  if (magnitude === 0) return '0';
  return magnitude < 0.005 ? `${percent < 0 ? '>-' : '<'}0.01` : percent.toFixed(2);
}

function defaultDigits(kind: Column['kind'], value: number): number | undefined {
  if (kind === 'number') return undefined;
  // Two decimals, and more only just below 1, where rounding would hide the difference: 0.58×, 0.998×, 1.02×.
  return kind === 'ratio' && Math.abs(value) < 0.995 ? 2 : DEFAULT_DIGITS;
}

function shownUnit({ kind, unit }: NumberForm, value: number): { size: number; suffix: string } {
  if (kind === 'percent') return { size: 0.01, suffix: ' %' };
  if (kind === 'ratio') return { size: 1, suffix: '×' };
  // The heading says the unit of a whole column.
  if (unit !== undefined) return { size: unitOf(kind, unit)?.size ?? 1, suffix: '' };
  const fitting = fittingUnit(kind, value);
  return fitting ? { size: fitting.size, suffix: ` ${fitting.name}` } : { size: 1, suffix: '' };
}

/** Decimal places that leave `digits` significant ones, after rounding (9.996 to 3 digits is 10.0). */
function decimalsFor(value: number, digits: number): number {
  if (value === 0) return digits - 1;
  const exponent = Number(value.toExponential(digits - 1).split('e')[1]);
  return Math.min(20, Math.max(0, digits - 1 - exponent));
}

function fixedText(value: number, decimals: number): string {
  const fixed = value.toFixed(decimals);
  const unsigned = fixed.replace('-', '');
  const [whole = '', fraction] = unsigned.split('.');
  const grouped = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, ',') : whole;
  const sign = fixed.startsWith('-') && /[1-9]/.test(unsigned) ? '-' : '';
  return sign + grouped + (fraction === undefined ? '' : `.${fraction}`);
}
