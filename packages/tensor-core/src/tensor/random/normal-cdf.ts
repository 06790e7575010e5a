/** A quotient of two polynomials, with coefficients from the highest power down. */
interface Quotient {
  readonly numerator: readonly number[];
  readonly denominator: readonly number[];
}

// W. J. Cody (1969), "Rational Chebyshev approximations for the error function": erf(y)/y in y² up to 0.46875,
// erfc(y)·e^(y²) in y up to 4, and the rest of its asymptotic series in 1/y² beyond.
const nearZero: Quotient = {
  numerator: [
    0.18577770618460315, 3.1611237438705655, 113.86415415105016, 377.485237685302, 3209.3775891384694,
  ],
  denominator: [1, 23.601290952344122, 244.02463793444417, 1282.6165260773723, 2844.236833439171],
};
const middle: Quotient = {
  numerator: [
    2.1531153547440383e-8, 0.5641884969886701, 8.883149794388377, 66.11919063714163, 298.6351381974001,
    881.952221241769, 1712.0476126340707, 2051.0783778260716, 1230.3393547979972,
  ],
  denominator: [
    1, 15.744926110709835, 117.6939508913125, 537.1811018620099, 1621.3895745666903, 3290.7992357334597,
    4362.619090143247, 3439.3676741437216, 1230.3393548037495,
  ],
};
const far: Quotient = {
  numerator: [
    0.016315387137302097, 0.30532663496123236, 0.36034489994980445, 0.12578172611122926, 0.016083785148742275,
    0.0006587491615298378,
  ],
  denominator: [
    1, 2.568520192289822, 1.8729528499234673, 0.5279051029514285, 0.06051834131244132, 0.0023352049762686918,
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

/** e^(-x²/2). The square of x, rounded to a sixteenth, is exact, so that the exponent of a large x is hardly rounded. */
function gaussian(x: number): number {
  const coarse = Math.trunc(16 * x) / 16;
  return Math.exp(-0.5 * coarse * coarse) * Math.exp(-0.5 * (x - coarse) * (x + coarse));
}

/** Φ(x), with a relative error of a few roundings, even where it is tiny. */
export function normalCdf(x: number): number {
  const y = Math.abs(x) * Math.SQRT1_2;
  if (!(y > 0.46875)) return 0.5 + 0.5 * x * Math.SQRT1_2 * quotientAt(nearZero, y * y);
  if (y > 28) return x < 0 ? 0 : 1;
  const tail = 0.5 * gaussian(x) * scaledErfc(y);
  return x < 0 ? tail : 1 - tail;
}
