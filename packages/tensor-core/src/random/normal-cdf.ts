/** Φ(x), by its Taylor series (Marsaglia 2004, "Evaluating the normal distribution"); absolute error below 1e-15. */
export function normalCdf(x: number): number {
  if (x < -8) return 0;
  if (x > 8) return 1;
  let [sum, term] = [x, x];
  for (let k = 3, before = 0; sum !== before; k += 2) {
    before = sum;
    term *= (x * x) / k;
    sum += term;
  }
  return 0.5 + sum * Math.exp(-0.5 * x * x - 0.5 * Math.log(2 * Math.PI));
}
