/**
 * Φ⁻¹ by rational functions (Wichura 1988, algorithm AS 241, PPND16), correct to about 1e-16, with a logarithm
 * of its own: nothing but +, -, ·, / and √ in a fixed order, so that kernels/random.cu gives the same bits. Lowest
 * power first; kernels/normal_coefficients.cuh repeats them.
 */
export const normalCoefficients = {
  centralNumerator: [
    3.387132872796366608, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
    4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3,
  ],
  centralDenominator: [
    1, 4.2313330701600911252e1, 6.871870074920579083e2, 5.3941960214247511077e3, 2.1213794301586595867e4,
    3.930789580009271061e4, 2.8729085735721942674e4, 5.226495278852854561e3,
  ],
  middleNumerator: [
    1.42343711074968357734, 4.6303378461565452959, 5.7694972214606914055, 3.64784832476320460504,
    1.27045825245236838258, 2.4178072517745061177e-1, 2.27238449892691845833e-2, 7.7454501427834140764e-4,
  ],
  middleDenominator: [
    1, 2.05319162663775882187, 1.6763848301838038494, 6.8976733498510000455e-1, 1.4810397642748007459e-1,
    1.51986665636164571966e-2, 5.475938084995344946e-4, 1.05075007164441684324e-9,
  ],
  farNumerator: [
    6.6579046435011037772, 5.4637849111641143699, 1.7848265399172913358, 2.9656057182850489123e-1,
    2.6532189526576123093e-2, 1.2426609473880784386e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7,
  ],
  farDenominator: [
    1, 5.9983220655588793769e-1, 1.3692988092273580531e-1, 1.48753612908506148525e-2, 7.868691311456132591e-4,
    1.8463183175100546818e-5, 1.4215117583164458887e-7, 2.04426310338993978564e-15,
  ],
  /** artanh(f) / f = Σ f^2k / (2k + 1), enough terms for f² up to 0.0295. */
  artanh: [1, 1 / 3, 1 / 5, 1 / 7, 1 / 9, 1 / 11, 1 / 13, 1 / 15, 1 / 17, 1 / 19, 1 / 21],
} as const;

// Written out, with the coefficients as constants of the module: a loop over arrays takes three times as long.
const [a0, a1, a2, a3, a4, a5, a6, a7] = normalCoefficients.centralNumerator;
const [, b1, b2, b3, b4, b5, b6, b7] = normalCoefficients.centralDenominator;
const [c0, c1, c2, c3, c4, c5, c6, c7] = normalCoefficients.middleNumerator;
const [, d1, d2, d3, d4, d5, d6, d7] = normalCoefficients.middleDenominator;
const [e0, e1, e2, e3, e4, e5, e6, e7] = normalCoefficients.farNumerator;
const [, f1, f2, f3, f4, f5, f6, f7] = normalCoefficients.farDenominator;
const [h0, h1, h2, h3, h4, h5, h6, h7, h8, h9, h10] = normalCoefficients.artanh;

const float = new Float64Array(1);
const words = new Uint32Array(float.buffer);
const highWord = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1 ? 1 : 0;

/** The natural logarithm of a positive normal number: e · ln 2 + 2 artanh((m - 1) / (m + 1)), √½ <= m < √2. */
function deterministicLog(x: number): number {
  float[0] = x;
  const high = words[highWord]!;
  let exponent = (high >>> 20) - 1023;
  words[highWord] = (high & 0xfffff) | 0x3ff00000;
  let mantissa = float[0];
  if (mantissa > Math.SQRT2) {
    mantissa *= 0.5;
    exponent += 1;
  }
  const f = (mantissa - 1) / (mantissa + 1);
  const s = f * f;
  const series =
    (((((((((h10 * s + h9) * s + h8) * s + h7) * s + h6) * s + h5) * s + h4) * s + h3) * s + h2) * s + h1) * s + h0;
  return exponent * Math.LN2 + 2 * f * series;
}

/** The x with Φ(x) = p, 0 < p < 1. */
export function inverseNormal(p: number): number {
  const q = p - 0.5;
  if (Math.abs(q) <= 0.425) {
    const r = 0.180625 - q * q;
    return (
      (q * (((((((a7 * r + a6) * r + a5) * r + a4) * r + a3) * r + a2) * r + a1) * r + a0)) /
      (((((((b7 * r + b6) * r + b5) * r + b4) * r + b3) * r + b2) * r + b1) * r + 1)
    );
  }
  const z = tailQuantile(Math.sqrt(-deterministicLog(q < 0 ? p : 1 - p)));
  return q < 0 ? -z : z;
}

/** -Φ⁻¹(e^(-s²)). */
function tailQuantile(s: number): number {
  if (s <= 5) {
    const r = s - 1.6;
    return (
      (((((((c7 * r + c6) * r + c5) * r + c4) * r + c3) * r + c2) * r + c1) * r + c0) /
      (((((((d7 * r + d6) * r + d5) * r + d4) * r + d3) * r + d2) * r + d1) * r + 1)
    );
  }
  const r = s - 5;
  return (
    (((((((e7 * r + e6) * r + e5) * r + e4) * r + e3) * r + e2) * r + e1) * r + e0) /
    (((((((f7 * r + f6) * r + f5) * r + f4) * r + f3) * r + f2) * r + f1) * r + 1)
  );
}
