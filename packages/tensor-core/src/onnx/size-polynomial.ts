/** One term: a coefficient, and the power of each size. */
export interface Term {
  readonly coefficient: number;
  readonly powers: readonly number[];
}

/** The highest power of each size: a matrix of scores has as many elements as the square of one. */
const highestPower = 2;

/** How many sizes of each axis a polynomial follows from. */
export const sizesOfAxis = highestPower + 1;

/**
 * The polynomial in `sizes` that gives `values`, with whole coefficients; null where there is none. It follows from a grid of
 * `sizesOfAxis` sizes of each axis, which come first; the others confirm it.
 */
export function fitPolynomial(
  sizes: readonly (readonly number[])[],
  values: readonly number[],
): readonly Term[] | null {
  const monomials = monomialsOf(sizes[0]!.length);
  const rows = sizes
    .slice(0, monomials.length)
    .map((each) => monomials.map((powers) => product(each, powers)));
  const solved = solve(rows, values.slice(0, monomials.length));
  if (solved === null) return null;
  const terms = monomials.flatMap((powers, i) => {
    const coefficient = Math.round(solved[i]!);
    return coefficient === 0 ? [] : [{ coefficient, powers }];
  });
  return values.every((value, i) => valueAt(terms, sizes[i]!) === value) ? terms : null;
}

function valueAt(terms: readonly Term[], sizes: readonly number[]): number {
  return terms.reduce((sum, { coefficient, powers }) => sum + coefficient * product(sizes, powers), 0);
}

function product(sizes: readonly number[], powers: readonly number[]): number {
  return powers.reduce((value, power, i) => value * sizes[i]! ** power, 1);
}

/** The powers of all terms for so many sizes, as a grid of sizes has them. */
function monomialsOf(count: number): number[][] {
  return gridOf(Array.from({ length: count }, () => Array.from({ length: sizesOfAxis }, (_, i) => i)));
}

/** All combinations of one value of each list. */
export function gridOf(lists: readonly (readonly number[])[]): number[][] {
  return lists.reduce<number[][]>(
    (grid, list) => grid.flatMap((point) => list.map((value) => [...point, value])),
    [[]],
  );
}

/** The solution of as many linear equations as unknowns, by elimination with pivots; null where there is not one. */
function solve(rows: readonly (readonly number[])[], values: readonly number[]): number[] | null {
  const matrix = rows.map((row, i) => [...row, values[i]!]);
  const count = matrix.length;
  for (let column = 0; column < count; column++) {
    const rest = matrix.slice(column);
    const pivot = rest.reduce((best, row) => (Math.abs(row[column]!) > Math.abs(best[column]!) ? row : best));
    if (pivot[column] === 0) return null;
    const at = matrix.indexOf(pivot);
    [matrix[column], matrix[at]] = [pivot, matrix[column]!];
    for (const row of matrix) {
      if (row === pivot) continue;
      const factor = row[column]! / pivot[column]!;
      for (let i = column; i <= count; i++) row[i]! -= factor * pivot[i]!;
    }
  }
  return matrix.map((row, i) => row[count]! / row[i]!);
}
