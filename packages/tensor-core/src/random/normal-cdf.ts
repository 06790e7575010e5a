/** A quotient of two polynomials, whose coefficients stand from the highest power down. */
interface Quotient {
  readonly numerator: readonly number[];
  readonly denominator: readonly number[];
}

// W. J. Cody (1969), "Rational Chebyshev approximations for the error function": erf(y)/y in y² up to 0.46875,
// erfc(y)·e^(y²) in y up to 4, and the rest of its asymptotic series in 1/y² beyond.
const nearZero: Quotient = {
  numerator: [
    0.185777706184603153, 3.1611237438705656, 113.864154151050156, 377.485237685302021, 3209.37758913846947,
  ],
  denominator: [1, 23.6012909523441209, 244.024637934444173, 1282.61652607737228, 2844.23683343917062],
};
const middle: Quotient = {
  numerator: [
    2.15311535474403846e-8, 0.564188496988670089, 8.88314979438837594, 66.1191906371416295,
    298.635138197400131, 881.95222124176909, 1712.04761263407058, 2051.07837782607147, 1230.33935479799725,
  ],
  denominator: [
    1, 15.7449261107098347, 117.693950891312499, 537.181101862009858, 1621.38957456669019,
    3290.79923573345963, 4362.61909014324716, 3439.36767414372164, 1230.33935480374942,
  ],
};
const far: Quotient = {
  numerator: [
    0.0163153871373020978, 0.305326634961232344, 0.360344899949804439, 0.125781726111229246,
    0.0160837851487422766, 6.58749161529837803e-4,
  ],
  denominator: [
    1, 2.56852019228982242, 1.87295284992346725, 0.527905102951428412, 0.0605183413124413191,
    2.33520497626869185e-3,
  ],
};

const horner = (coefficients: readonly number[], x: number) => {
  let sum = 0;
  for (const coefficient of coefficients) sum = sum * x + coefficient;
  return sum;
};
const quotientAt = ({ numerator, denominator }: Quotient, x: number) =>
  horner(numerator, x) / horner(denominator, x);

/** erfc(y)·e^(y²) for y > 0.46875. */
function scaledErfc(y: number): number {
  if (y <= 4) return quotientAt(middle, y);
  const reciprocal = 1 / (y * y);
  return (1 / Math.sqrt(Math.PI) - reciprocal * quotientAt(far, reciprocal)) / y;
}

/** e^(-x²/2). The square of x to a sixteenth is exact, so that the exponent of a far x is not rounded by much. */
function gaussian(x: number): number {
  const coarse = Math.trunc(16 * x) / 16;
  return Math.exp(-0.5 * coarse * coarse) * Math.exp(-0.5 * (x - coarse) * (x + coarse));
}

/** Φ(x), with a relative error of a few roundings, also where it is tiny. */
export function normalCdf(x: number): number {
  const y = Math.abs(x) * Math.SQRT1_2;
  if (!(y > 0.46875)) return 0.5 + 0.5 * x * Math.SQRT1_2 * quotientAt(nearZero, y * y);
  if (y > 28) return x < 0 ? 0 : 1;
  const tail = 0.5 * gaussian(x) * scaledErfc(y);
  return x < 0 ? tail : 1 - tail;
}
