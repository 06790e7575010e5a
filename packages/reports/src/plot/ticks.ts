import { formatNumber } from '../table/format.ts';

/** The share of the values below which their range is a rounding error. */
const LEAST_SPAN = 1e-12;
/** The most digits that a tick has. */
const MOST_DIGITS = 21;

/** Multiples of 1, 2 or 5 times a power of ten that cover [`low`, `high`] in about `count` steps. */
export function linearTicks(low: number, high: number, count: number): number[] {
  // Values that rounding alone sets apart have no round numbers between them.
  const isRange = high - low > Math.max(Math.abs(low), Math.abs(high)) * LEAST_SPAN;
  const span = isRange ? high - low : Math.abs(low) || 1;
  const rough = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough * (1 - 1e-9)) ?? 10);
  const first = Math.floor(low / step + 1e-9);
  const last = Math.max(first + 1, Math.ceil((isRange ? high : low + span) / step - 1e-9));
  const decimals = Math.max(0, -Math.floor(Math.log10(step)));
  const rounded = (tick: number) => (decimals > 20 ? tick.toPrecision(15) : tick.toFixed(decimals));
  return Array.from({ length: last - first + 1 }, (_, index) => Number(rounded((first + index) * step)));
}

/**
 * Ticks of a logarithmic axis that cover [`low`, `high`]: powers of two if all `values` are such, otherwise powers
 * of ten, with 2 and 5 between them where there is room for about `count`.
 */
export function logTicks(low: number, high: number, count: number, values: readonly number[]): number[] {
  if (values.length > 1 && values.every((value) => Number.isInteger(Math.log2(value)))) {
    return thinned(powers(2, [1], low, high), count);
  }
  const fine = powers(10, [1, 2, 5], low, high);
  return fine.length <= count + 2 ? fine : thinned(powers(10, [1], low, high), count);
}

/** The text of each tick, all to the same decimal place on a linear axis. */
export function tickTexts(ticks: readonly number[], scale: 'linear' | 'log'): string[] {
  if (scale === 'log') return ticks.map(logTickText);
  const step = Math.abs((ticks[1] ?? 1) - (ticks[0] ?? 0));
  const decimals = -Math.floor(Math.log10(step) + 1e-9);
  return ticks.map((tick) => {
    if (tick === 0 && decimals > MOST_DIGITS) return '0';
    const whole = tick === 0 ? 1 : Math.floor(Math.log10(Math.abs(tick)) + 1e-9) + 1;
    return formatNumber(tick, Math.min(MOST_DIGITS, Math.max(1, whole + decimals)));
  });
}

/** `0.05`, `1024`, `2×10⁶`. */
function logTickText(tick: number): string {
  const [mantissa = '', exponent = ''] = tick.toExponential().split('e');
  const power = Number(exponent);
  if (power > -5 && power < 6) {
    return formatNumber(tick, Number.isInteger(tick) ? undefined : mantissa.replace('.', '').length);
  }
  const superscript = String(power).replace(/./g, (character) => '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(character)] ?? '⁻');
  return `${mantissa === '1' ? '' : `${mantissa}×`}10${superscript}`;
}

function powers(base: number, factors: readonly number[], low: number, high: number): number[] {
  const first = Math.floor(Math.log(low) / Math.log(base) + 1e-9);
  const last = Math.ceil(Math.log(high) / Math.log(base) - 1e-9);
  const ticks: number[] = [];
  for (let exponent = first; exponent <= Math.max(last, first + 1); exponent += 1) {
    for (const factor of factors) ticks.push(withoutRounding(factor * base ** exponent));
  }
  const start = Math.max(
    0,
    ticks.findLastIndex((tick) => tick <= low * (1 + 1e-9)),
  );
  const end = ticks.findIndex((tick) => tick >= high * (1 - 1e-9));
  return ticks.slice(start, Math.max(end, start + 1) + 1);
}

/** Every n-th tick, so that at most `count` or so remain; the first and the reach to the last are kept. */
function thinned(ticks: number[], count: number): number[] {
  const stride = Math.ceil(ticks.length / Math.max(2, count + 2));
  const kept = ticks.filter((_, index) => index % stride === 0);
  const last = ticks[ticks.length - 1]!;
  const ratio = kept.length > 1 ? kept[1]! / kept[0]! : 10;
  const end = kept[kept.length - 1]!;
  return end < last * (1 - 1e-9) ? [...kept, withoutRounding(end * ratio)] : kept;
}

/** A tick without the trailing digits that floating-point arithmetic leaves. */
function withoutRounding(tick: number): number {
  return Number(tick.toPrecision(12));
}
