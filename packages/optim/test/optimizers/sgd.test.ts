import { describe, expect, it } from 'vitest';
import { type ParameterGroup, SGD, type SGDOptions } from '../../src/index.ts';
import { parameterOf, setGradient } from '../parameters.ts';
import { referenceSGD, relativeError } from '../reference.ts';

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

  it("has PyTorch's defaults", () => {
    const [{ parameters: _, ...hyperparameters }] = new SGD([parameterOf([2], 1)]).groups as [
      ParameterGroup<SGDOptions>,
    ];
    expect(hyperparameters).toEqual({ learningRate: 1e-3, momentum: 0, weightDecay: 0, nesterov: false });
  });

  it('refuses what makes no step', () => {
    const parameter = parameterOf([2], 1);
    expect(() => new SGD([parameter], { nesterov: true })).toThrow(/momentum/);
    expect(() => new SGD([parameter], { momentum: -1 })).toThrow(/momentum must .* not -1/);
    expect(() => new SGD([parameter], { learningRate: -1 })).toThrow(/learningRate must .* not -1/);
    expect(() => new SGD([parameter], { weightDecay: NaN })).toThrow(/weightDecay must .* not NaN/);
    expect(() =>
      new SGD([parameter]).loadStateDict({ tensors: {}, metadata: { optimizer: 'AdamW' } }),
    ).toThrow(/not that of an SGD/);
  });
});
