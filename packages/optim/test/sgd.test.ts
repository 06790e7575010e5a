import { describe, expect, it } from 'vitest';
import { SGD, type SGDOptions } from '../src/index.ts';
import { parameterOf, setGradient } from './parameters.ts';
import { relativeError } from './reference.ts';

function referenceSGD(
  p: Float64Array,
  buffer: Float64Array,
  g: ArrayLike<number>,
  options: SGDOptions,
): void {
  const { learningRate, momentum, weightDecay, nesterov } = options;
  for (let i = 0; i < p.length; i++) {
    const gradient = g[i]! + weightDecay * p[i]!;
    buffer[i] = momentum * buffer[i]! + gradient;
    p[i] = p[i]! - learningRate * (nesterov ? gradient + momentum * buffer[i]! : buffer[i]!);
  }
}

describe('SGD', () => {
  const cases: SGDOptions[] = [
    { learningRate: 0.1, momentum: 0, weightDecay: 0, nesterov: false },
    { learningRate: 0.1, momentum: 0, weightDecay: 0.01, nesterov: false },
    { learningRate: 0.1, momentum: 0.9, weightDecay: 0.01, nesterov: false },
    { learningRate: 0.1, momentum: 0.9, weightDecay: 0.01, nesterov: true },
  ];

  it.each(cases)('follows the rule with %o', (options) => {
    const parameters = [parameterOf([4, 5], 1), parameterOf([3], 2)];
    const references = parameters.map((x) => ({
      p: Float64Array.from(x.toFlatArray()),
      b: new Float64Array(x.size),
    }));
    const optimizer = new SGD(parameters, options);
    for (let step = 0; step < 4; step++) {
      parameters.forEach((parameter, i) => {
        referenceSGD(references[i]!.p, references[i]!.b, setGradient(parameter, 10 * step + i), options);
      });
      optimizer.step();
    }
    parameters.forEach((x, i) => expect(relativeError(x.toFlatArray(), references[i]!.p)).toBeLessThan(3e-7));
  });

  it('continues from a saved state as if it had not stopped', () => {
    const options = { learningRate: 0.1, momentum: 0.9 };
    const [whole, stopped] = [parameterOf([6], 1), parameterOf([6], 1)];
    const optimizers = [whole, stopped].map((parameter) => new SGD([parameter], options));
    const stepAll = (seed: number, list: readonly SGD[]) =>
      [whole, stopped].forEach((parameter, i) => {
        setGradient(parameter, seed);
        list[i]!.step();
      });
    stepAll(1, optimizers);
    const continued = new SGD([stopped], options);
    continued.loadStateDict(optimizers[1]!.stateDict());
    stepAll(2, [optimizers[0]!, continued]);
    expect(stopped.toFlatArray()).toEqual(whole.toFlatArray());
  });

  it('refuses what makes no step', () => {
    const parameter = parameterOf([2], 1);
    expect(() => new SGD([parameter], { nesterov: true })).toThrow(/momentum/);
    expect(() => new SGD([parameter], { momentum: -1 })).toThrow(/momentum -1/);
    expect(() =>
      new SGD([parameter]).loadStateDict({ tensors: {}, metadata: { optimizer: 'AdamW' } }),
    ).toThrow(/not that of an SGD/);
  });
});
