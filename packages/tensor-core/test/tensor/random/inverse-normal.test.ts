import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { kernelSource } from '../../../src/op/kernel-arguments/kernel-source.ts';
import { inverseNormal, normalCoefficients } from '../../../src/tensor/random/inverse-normal.ts';
import { normalCdf } from '../../../src/tensor/random/normal-cdf.ts';

describe('inverseNormal', () => {
  it('inverts Φ', () => {
    for (let x = -5; x <= 5; x += 0.01) {
      const density = Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI);
      expect(Math.abs(inverseNormal(normalCdf(x)) - x)).toBeLessThan(4e-15 + 2e-15 / density);
    }
  });

  // Quantiles that Wichura's paper gives as checks of the three branches.
  it.each([
    [0.25, -0.6744897501960817],
    [0.001, -3.090232306167814],
    [1e-20, -9.262340089798409],
  ])('of %d is %d', (p, x) => {
    expect(Math.abs(inverseNormal(p) / x - 1)).toBeLessThan(1e-15);
  });

  it('has the coefficients of the kernel', () => {
    const source = readFileSync(kernelSource('random/normal_coefficients.cuh'), 'utf8');
    for (const [name, coefficients] of Object.entries(normalCoefficients)) {
      const kernelName = `k${name[0]!.toUpperCase()}${name.slice(1)}`;
      const [, list] = source.match(new RegExp(`${kernelName}\\[\\] = \\{([^}]*)\\}`))!;
      const values = list!.split(',').map((text) =>
        text
          .split('/')
          .map(Number)
          .reduce((a, b) => a / b),
      );
      expect(values).toEqual([...coefficients]);
    }
    expect(source).toContain(`kSqrt2 = ${Math.SQRT2};`);
    expect(source).toContain(`kLn2 = ${Math.LN2};`);
  });
});

describe('normalCdf', () => {
  it.each([
    [0, 0.5],
    [1, 0.8413447460685429],
    [-2, 0.02275013194817921],
    [3, 0.9986501019683699],
    [9, 1],
    [-9, 0],
  ])('of %d is %d', (x, p) => expect(normalCdf(x)).toBeCloseTo(p, 14));

  // By the continued fraction of Laplace, in 60 decimal digits.
  it.each([
    [-0.6, 0.2742531177500736],
    [-0.7, 0.24196365222307303],
    [-3, 0.0013498980316300946],
    [-5.6, 1.071759025831093e-8],
    [-6, 9.86587645037698e-10],
    [-20, 2.7536241186062337e-89],
    [-37, 5.725571222524577e-300],
  ])('of %d is right to a few roundings', (x, p) => {
    expect(Math.abs(normalCdf(x) / p - 1)).toBeLessThan(8 * 2 ** -53);
  });

  it('passes NaN on', () => expect(normalCdf(NaN)).toBeNaN());
});
