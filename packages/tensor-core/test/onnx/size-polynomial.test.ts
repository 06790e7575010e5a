import { expect, it } from 'vitest';
import { fitPolynomial, gridOf } from '../../src/onnx/size-polynomial.ts';

/** A grid of three sizes of two axes, and a set of sizes that confirms what follows. */
const sizes = [...gridOf([[7, 8, 9], [5, 4, 3]]), [10, 2]]; // prettier-ignore
const fitted = (value: (n: number, m: number) => number) =>
  fitPolynomial(
    sizes,
    sizes.map(([n, m]) => value(n!, m!)),
  );

it('finds sums of products of sizes with whole coefficients', () => {
  expect(fitted(() => 12)).toEqual([{ coefficient: 12, powers: [0, 0] }]);
  expect(fitted(() => 0)).toEqual([]);
  expect(fitted((n, m) => 4 * n * m - n + 2)).toEqual([
    { coefficient: 2, powers: [0, 0] },
    { coefficient: -1, powers: [1, 0] },
    { coefficient: 4, powers: [1, 1] },
  ]);
  expect(fitted((n, m) => 8 * n * n * m * m)).toEqual([{ coefficient: 8, powers: [2, 2] }]);
});

it('refuses what only looks like one at the sizes that it follows from', () => {
  expect(fitted((n) => Math.ceil(n / 4))).toBeNull();
  expect(fitted((n) => n ** 3)).toBeNull();
  expect(fitted((n, m) => (n === 10 && m === 2 ? 1 : 0))).toBeNull();
  expect(fitted((n) => 1 / n)).toBeNull();
});
