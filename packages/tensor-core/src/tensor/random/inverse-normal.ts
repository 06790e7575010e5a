/**
 * Φ⁻¹ by rational functions (Wichura 1988, algorithm AS 241, PPND16), correct to about 1e-16, with a logarithm of its own:
 * only +, -, ·, / and √ in a fixed order, so that kernels/random/random_normal.cu gives the same bits. Lowest power first;
 * kernels/random/normal_coefficients.cuh repeats them.
 */
export const normalCoefficients = {
  centralNumerator: [
    3.3871328727963665, 133.14166789178438, 1971.5909503065513, 13731.69376550946, 45921.95393154987,
    67265.7709270087, 33430.57558358813, 2509.0809287301227,
  ],
  centralDenominator: [
    1, 42.31333070160091, 687.1870074920579, 5394.196021424751, 21213.794301586597, 39307.89580009271,
    28729.085735721943, 5226.495278852854,
  ],
  middleNumerator: [
    1.4234371107496835, 4.630337846156546, 5.769497221460691, 3.6478483247632045, 1.2704582524523684,
    0.2417807251774506, 0.022723844989269184, 0.0007745450142783414,
  ],
  middleDenominator: [
    1, 2.053191626637759, 1.6763848301838038, 0.6897673349851, 0.14810397642748008, 0.015198666563616457,
    0.0005475938084995345, 1.0507500716444169e-9,
  ],
  farNumerator: [
    6.657904643501103, 5.463784911164114, 1.7848265399172913, 0.29656057182850487, 0.026532189526576124,
    0.0012426609473880784, 2.7115555687434876e-5, 2.0103343992922881e-7,
  ],
  farDenominator: [
    1, 0.599832206555888, 0.1369298809227358, 0.014875361290850615, 0.0007868691311456133,
    1.8463183175100548e-5, 1.421511758316446e-7, 2.0442631033899397e-15,
  ],
  /** artanh(f) / f = Σ f^2k / (2k + 1), enough terms for f² up to 0.0295. */
  artanh: [1, 1 / 3, 1 / 5, 1 / 7, 1 / 9, 1 / 11, 1 / 13, 1 / 15, 1 / 17, 1 / 19, 1 / 21],
} as const;

// Written out, with the coefficients as constants of the module: a loop over arrays would take three times as long.
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
    (((((((((h10 * s + h9) * s + h8) * s + h7) * s + h6) * s + h5) * s + h4) * s + h3) * s + h2) * s + h1) *
      s +
    h0;
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
