import { type Tensor, addInPlace, full, tensor } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { clipGradientNorm } from '../../src/index.ts';
import { parameterOf, setGradient } from '../parameters.ts';
import { relativeError } from '../reference.ts';

const shapes = [[3], [40, 50], [], [2, 3, 4]];

function withGradients() {
  const parameters = shapes.map((shape, i) => parameterOf(shape, i));
  const gradients = parameters.map((parameter, i) => setGradient(parameter, 7 + i));
  const norm = Math.sqrt(gradients.reduce((sum, g) => sum + g.reduce((s, x) => s + x * x, 0), 0));
  return { parameters, gradients, norm };
}

describe('clipGradientNorm over ranks', () => {
  /** Of this rank's squares and another's, which are 9. */
  const besideThree = { sum: (x: Tensor) => addInPlace(x, full([], 9)), max() {} };

  it('takes the norm over the gradients of all', () => {
    const parameter = parameterOf([2], 1);
    parameter.grad = tensor([4, 0]);
    expect(clipGradientNorm([parameter], 1, { ranks: besideThree }).item()).toBeCloseTo(5, 5);
    expect(parameter.grad.toFlatArray()[0]).toBeCloseTo(4 / 5, 5);
  });

  it('scales those that another rank counts, without counting them', () => {
    const [own, copied] = [parameterOf([2], 1), parameterOf([2], 2)];
    own.grad = tensor([4, 0]);
    copied.grad = tensor([0, 10]);
    const ranks = { ...besideThree, counts: (parameter: Tensor) => parameter === own };
    expect(clipGradientNorm([own, copied], 1, { ranks }).item()).toBeCloseTo(5, 5);
    expect(copied.grad.toFlatArray()[1]).toBeCloseTo(2, 5);
  });

  it('counts by the parameters of the gradients, of which some have none, and may count none', () => {
    const [frozen, own, copied] = [1, 2, 3].map((seed) => parameterOf([2], seed)) as [Tensor, Tensor, Tensor];
    own.grad = tensor([4, 0]);
    copied.grad = tensor([8, 0]);
    const counts = (parameter: Tensor) => parameter === own;
    const norm = clipGradientNorm([frozen, own, copied], 2.5, { ranks: { ...besideThree, counts } });
    expect(norm.item()).toBe(5);
    expect(own.grad.toFlatArray()[0]).toBeCloseTo(2, 5);
    expect(copied.grad.toFlatArray()[0]).toBeCloseTo(4, 5);
    const alone = clipGradientNorm([copied], 1.5, { ranks: { ...besideThree, counts } });
    expect(alone.item()).toBe(3);
    expect(copied.grad.toFlatArray()[0]).toBeCloseTo(2, 5);
  });

  it('needs no gradient on this one', () => {
    expect(clipGradientNorm([parameterOf([2], 1)], 1, { ranks: besideThree }).item()).toBe(3);
  });
});

describe('clipGradientNorm', () => {
  it('scales all gradients by one factor and gives the norm before', () => {
    const { parameters, gradients, norm } = withGradients();
    const measured = clipGradientNorm(parameters, 1);
    expect(measured.item() / norm).toBeCloseTo(1, 6);
    parameters.forEach(({ grad }, i) => {
      const expected = Array.from(gradients[i]!, (x) => x / (norm + 1e-6));
      expect(relativeError(grad!.toFlatArray(), expected)).toBeLessThan(3e-7);
    });
  });

  // 1,000,003 is a prime number, which divides into no equal pieces.
  it.each([[[3_000_000]], [[1000, 1000]], [[1_000_003]]])(
    'keeps its digits over gradients of %j',
    (shape) => {
      const parameter = parameterOf(shape, 1);
      const gradient = setGradient(parameter, 2);
      const exact = Math.sqrt(gradient.reduce((sum, x) => sum + x * x, 0));
      expect(Math.abs(clipGradientNorm([parameter], 1e9).item() / exact - 1)).toBeLessThan(3e-7);
    },
  );

  it('leaves gradients of a smaller norm as they are, and parameters without one out', () => {
    const { parameters, gradients, norm } = withGradients();
    clipGradientNorm([...parameters, parameterOf([5], 1)], norm * 1.5);
    parameters.forEach(({ grad }, i) => expect(grad!.toTypedArray()).toEqual(gradients[i]));
  });

  it('refuses what has no norm', () => {
    expect(() => clipGradientNorm([parameterOf([2], 1)], 1)).toThrow(/no parameter has a gradient/);
    for (const maxNorm of [0, -1, NaN]) {
      expect(() => clipGradientNorm(withGradients().parameters, maxNorm)).toThrow(
        `maxNorm must be a positive number, not ${maxNorm}`,
      );
    }
  });
});
