import type { Column } from './model.ts';

const DEFAULT_DIGITS = 3;

interface Unit {
  name: string;
  /** How many of the base unit it holds. */
  size: number;
}

const DURATION_UNITS: readonly Unit[] = [
  { name: 's', size: 1e3 },
  { name: 'ms', size: 1 },
  { name: 'µs', size: 1e-3 },
  { name: 'ns', size: 1e-6 },
];

const BYTE_UNITS: readonly Unit[] = [
  { name: 'TiB', size: 2 ** 40 },
  { name: 'GiB', size: 2 ** 30 },
  { name: 'MiB', size: 2 ** 20 },
  { name: 'KiB', size: 2 ** 10 },
  { name: 'B', size: 1 },
];

/**
 * `value` to `digits` significant digits, never rounding away a digit before the decimal point; thousands are
 * parted by commas from 10,000 on. An integer stays whole unless `digits` is given. The same in every locale.
 */
export function formatNumber(value: number, digits?: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '-∞';
  if (digits === undefined && Number.isInteger(value)) return formatFixed(value, 0);
  const significant = digits ?? DEFAULT_DIGITS;
  if (value !== 0 && Math.abs(value) < 1e-4) return value.toExponential(Math.max(0, significant - 1));
  return formatFixed(value, decimalsFor(value, significant));
}

/** Milliseconds as `1.23 ms`, or in the unit given (`s`, `ms`, `µs`, `ns`). */
export function formatDuration(durationMs: number, digits?: number, unit?: string): string {
  return formatMeasured(durationMs, { kind: 'duration', digits, unit });
}

/** Bytes as `1.50 GiB`, or in the unit given (`B`, `KiB`, `MiB`, `GiB`, `TiB`). */
export function formatBytes(byteLength: number, digits?: number, unit?: string): string {
  return formatMeasured(byteLength, { kind: 'bytes', digits, unit });
}

/** A fraction of one as `58.2 %`, `0.79 %`, `<0.01 %`: three significant digits, but at most two decimals. */
export function formatPercent(fraction: number, digits?: number): string {
  return formatMeasured(fraction, { kind: 'percent', digits });
}

/** A factor as `0.58×`, `1.02×`, `12.3×`: two significant digits below one, three above. */
export function formatRatio(factor: number, digits?: number): string {
  return formatMeasured(factor, { kind: 'ratio', digits });
}

/**
 * `value ± deviation`: the deviation to one significant digit (two if it begins with a 1), the value to the same
 * place.
 */
export function formatUncertain(value: number, deviation: number, digits?: number): string {
  if (!(deviation > 0) || !Number.isFinite(value) || !Number.isFinite(deviation)) {
    return `${formatNumber(value, digits)} ± ${formatNumber(deviation)}`;
  }
  const leading = Number(deviation.toExponential(1)[0]);
  const decimals = Math.min(12, decimalsFor(deviation, leading === 1 ? 2 : 1));
  return `${formatFixed(value, decimals)} ± ${formatFixed(deviation, decimals)}`;
}

/** A number of a column, with its unit where the heading does not say it (see {@link headingUnit}). */
export function formatMeasured(
  value: number,
  column: Pick<Column, 'kind' | 'unit' | 'digits'>,
  deviation?: number,
): string {
  if (column.kind === 'percent' && column.digits === undefined && deviation === undefined) {
    const rounded = roundedPercent(value * 100);
    if (rounded !== undefined) return `${rounded} %`;
  }
  const { size, suffix } = shownUnit(column, value);
  const digits = column.digits ?? defaultDigits(column.kind, value);
  if (deviation !== undefined) return formatUncertain(value / size, deviation / size, digits) + suffix;
  return formatNumber(value / size, suffix === ' B' && Number.isInteger(value) ? undefined : digits) + suffix;
}

/** The unit that a column's heading shows; undefined where every cell carries its own. */
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

function shownUnit(column: Pick<Column, 'kind' | 'unit'>, value: number): { size: number; suffix: string } {
  if (column.kind === 'percent') return { size: 0.01, suffix: ' %' };
  if (column.kind === 'ratio') return { size: 1, suffix: '×' };
  if (column.kind !== 'duration' && column.kind !== 'bytes') return { size: 1, suffix: '' };
  const units = column.kind === 'duration' ? DURATION_UNITS : BYTE_UNITS;
  if (column.unit === undefined) {
    const fitting = fittingUnit(value, units, column.kind === 'duration' ? 'ms' : 'B');
    return { size: fitting.size, suffix: ` ${fitting.name}` };
  }
  const unit = units.find(({ name }) => name === column.unit);
  if (unit) return { size: unit.size, suffix: '' };
  const known = units.map(({ name }) => name).join(', ');
  throw new RangeError(`a ${column.kind} cannot be shown in '${column.unit}': use one of ${known}`);
}

function fittingUnit(value: number, units: readonly Unit[], unitOfZero: string): Unit {
  const magnitude = Math.abs(value);
  const fitting =
    magnitude === 0 || !Number.isFinite(magnitude)
      ? units.find(({ name }) => name === unitOfZero)
      : units.find(({ size }) => magnitude >= size);
  return fitting ?? units[units.length - 1]!;
}

/** Decimal places that leave `digits` significant ones, after rounding (9.996 to 3 digits is 10.0). */
function decimalsFor(value: number, digits: number): number {
  if (value === 0) return Math.max(0, digits - 1);
  const exponent = Number(value.toExponential(Math.max(0, digits - 1)).split('e')[1]);
  return Math.min(20, Math.max(0, digits - 1 - exponent));
}

function formatFixed(value: number, decimals: number): string {
  if (Math.abs(value) >= 1e15) return value.toExponential(DEFAULT_DIGITS - 1);
  const fixed = value.toFixed(decimals);
  const unsigned = fixed.replace('-', '');
  const [whole = '', fraction] = unsigned.split('.');
  const grouped = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, ',') : whole;
  const sign = fixed.startsWith('-') && /[1-9]/.test(unsigned) ? '-' : '';
  return sign + grouped + (fraction === undefined ? '' : `.${fraction}`);
}
