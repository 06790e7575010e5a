import { type DType, isFloatingPoint } from '../../base/dtype.ts';
import { fromBits16, toBits16 } from '../../base/float16.ts';

/** The most digits after the point. */
const precision = 4;

// NumPy's rule: numbers too large, too small or too far apart for one column are written with exponents.
const firstWithExponent = 1e8;
const smallestWithout = 1e-4;
const widestRatio = 1000;

/**
 * The elements of a tensor as texts of one width, so that columns align, in the form of NumPy at four digits. Integers are
 * bigints or numbers, bools 0 and 1.
 */
export function numberColumns(dtype: DType, values: readonly (number | bigint)[]): string[] {
  if (dtype === 'bool') return alignRight(values.map((value) => String(Number(value) !== 0)));
  if (!isFloatingPoint(dtype)) return alignRight(values.map(String));
  return floatColumns(dtype, values.map(Number));
}

function floatColumns(dtype: DType, values: readonly number[]): string[] {
  const finite = values.filter(Number.isFinite);
  const texts = needsExponent(finite) ? withExponents(dtype, finite) : positional(dtype, finite);
  let next = 0;
  return alignRight(values.map((value) => (Number.isFinite(value) ? texts[next++]! : nonFinite(value))));
}

function nonFinite(value: number): string {
  return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf';
}

function needsExponent(finite: readonly number[]): boolean {
  let [most, least] = [0, Infinity];
  for (const value of finite) {
    if (value === 0) continue;
    most = Math.max(most, Math.abs(value));
    least = Math.min(least, Math.abs(value));
  }
  return most >= firstWithExponent || least < smallestWithout || most / least > widestRatio;
}

/** Such as `1.5 ` next to `0.25`: points are aligned, and there are no redundant digits. */
function positional(dtype: DType, values: readonly number[]): string[] {
  const texts = values.map((value) => signOf(value) + shortest(dtype, value, fixed));
  const most = Math.max(0, ...texts.map((text) => text.length - text.indexOf('.')));
  return texts.map((text) => text.padEnd(text.indexOf('.') + most));
}

/** Such as `1.50e+10` next to `2.25e-05`: mantissas and exponents have one width each. */
function withExponents(dtype: DType, values: readonly number[]): string[] {
  const needed = values.map((value) => {
    const mantissa = shortest(dtype, value, scientific);
    return mantissa.length - mantissa.indexOf('.') - 1;
  });
  const places = Math.max(...needed);
  const parts = values.map((value) => {
    const [mantissa, exponent] = roundHalfToEven(Math.abs(value), places, scientific).split('e');
    const point = places === 0 ? '.' : '';
    return { mantissa: signOf(value) + mantissa! + point, exponent: exponent! };
  });
  const digits = Math.max(2, ...parts.map(({ exponent }) => exponent.length - 1));
  return parts.map(
    ({ mantissa, exponent }) => `${mantissa}e${exponent[0]}${exponent.slice(1).padStart(digits, '0')}`,
  );
}

function signOf(value: number): string {
  return value < 0 || Object.is(value, -0) ? '-' : '';
}

/** Writes a number with so many digits after the point. */
type Write = (x: number, places: number) => string;

const fixed: Write = (x, places) => x.toFixed(places);
const scientific: Write = (x, places) => x.toExponential(places);

/**
 * The magnitude of `value` with the fewest places, up to four, that distinguish it from its neighbours in `dtype`; with a
 * point, but without trailing zeros.
 */
function shortest(dtype: DType, value: number, write: Write): string {
  const magnitude = Math.abs(value);
  let text = '';
  for (let places = 0; places <= precision; places++) {
    text = roundHalfToEven(magnitude, places, write);
    if (inDType(dtype, Number(text)) === magnitude) break;
  }
  const [digits] = text.split('e');
  return digits!.includes('.') ? digits!.replace(/0+$/, '') : `${digits}.`;
}

function inDType(dtype: DType, x: number): number {
  if (dtype === 'float64') return x;
  return dtype === 'float32' ? Math.fround(x) : fromBits16(dtype, toBits16(dtype, x));
}

/** JavaScript rounds halves up; further digits show whether there was one. */
function roundHalfToEven(magnitude: number, places: number, write: Write): string {
  const text = write(magnitude, places);
  const digits = text.split('e')[0]!;
  const [exact] = write(magnitude, places + 40).split('e');
  const isHalf = /^50*$/.test(exact!.slice(exact!.indexOf('.') + 1 + places));
  const last = Number(digits.at(-1));
  if (!isHalf || last % 2 === 0) return text;
  return digits.slice(0, -1) + (last - 1) + text.slice(digits.length);
}

function alignRight(texts: readonly string[]): string[] {
  const width = texts.reduce((most, text) => Math.max(most, text.length), 0);
  return texts.map((text) => text.padStart(width));
}
