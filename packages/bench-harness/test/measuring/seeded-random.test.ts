import { expect, it } from 'vitest';
import { seededRandom } from '../../src/measuring/seeded-random.ts';

// Worked out apart, in Python with 32-bit arithmetic.
it.each([
  [0, [0.26642920868471265, 0.0003297457005828619, 0.2232720274478197, 0.1462021479383111]],
  [1, [0.6270739405881613, 0.002735721180215478, 0.5274470399599522, 0.9810509674716741]],
  [42, [0.6011037519201636, 0.44829055899754167, 0.8524657934904099, 0.6697340414393693]],
])('seed %i gives the numbers of mulberry32', (seed, numbers) => {
  const random = seededRandom(seed);
  expect(numbers.map(() => random())).toEqual(numbers);
});
