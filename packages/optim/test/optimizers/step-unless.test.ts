import { DTypeError, DisposedError, type Tensor, fromTypedArray, mul, tensor } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { AdamW, GradientScaler, Optimizer, type OptimizerState, SGD } from '../../src/index.ts';
import { parameterOf, setGradient } from '../parameters.ts';

const setup = (make: (parameters: Tensor[]) => AdamW | SGD) => {
  const parameter = parameterOf([3], 1);
  setGradient(parameter, 2);
  return { parameter, optimizer: make([parameter]) };
};
const makes: [string, (parameters: Tensor[]) => AdamW | SGD][] = [
  ['AdamW', (parameters) => new AdamW(parameters)],
  ['SGD', (parameters) => new SGD(parameters)],
  ['SGD with momentum', (parameters) => new SGD(parameters, { momentum: 0.5 })],
];

/** A user's optimizer that does not handle skipped steps. */
class Halving extends Optimizer<{ learningRate: number }> {
  constructor(parameters: Tensor[]) {
    super({ name: 'Halving', defaults: { learningRate: 1 }, check: () => {} }, parameters, {});
  }
  protected override update(): void {
    for (const { grad } of this.parameters()) mul(grad!, 0.5).dispose();
  }
  override stateDict(): OptimizerState {
    return { tensors: {}, metadata: {} };
  }
  override loadStateDict(): void {}
  protected override freeState(): void {}
}

describe.each(makes)('stepUnless of %s', (_, make) => {
  it.each([
    [1, true],
    [0.5, true],
    [-1, true],
    [NaN, true],
    [Infinity, true],
    [0, false],
    [-0, false],
  ])('of %f skips the step: %s', (value, isSkipped) => {
    const [{ parameter, optimizer }, other] = [setup(make), setup(make)];
    const before = parameter.toFlatArray();
    optimizer.stepUnless(fromTypedArray(Float32Array.of(value), []));
    other.optimizer.step();
    expect(parameter.toFlatArray()).toEqual(isSkipped ? before : other.parameter.toFlatArray());
    expect(optimizer.stateDict().metadata.steps).toBe(
      optimizer instanceof SGD ? undefined : isSkipped ? '[0]' : '[1]',
    );
  });

  it('refuses what is not a float32 scalar, and a disposed optimizer', () => {
    const { parameter, optimizer } = setup(make);
    const before = parameter.toFlatArray();
    expect(() => optimizer.stepUnless(tensor([0]))).toThrow(/takes a float32 scalar, not \[1\] float32/);
    expect(() => optimizer.stepUnless(tensor(0, { dtype: 'bool' }))).toThrow(DTypeError);
    const skip = tensor(0);
    skip.dispose();
    expect(() => optimizer.stepUnless(skip)).toThrow(DisposedError);
    expect(parameter.toFlatArray()).toEqual(before);
    optimizer.dispose();
    expect(() => optimizer.stepUnless(tensor(0))).toThrow(/\.stepUnless: .* had been disposed/);
  });
});

describe('an optimizer that cannot skip on the device', () => {
  it('makes no step under a scaler, and says what it lacks', () => {
    const parameter = parameterOf([3], 1);
    setGradient(parameter, 2);
    const [optimizer, scaler] = [new Halving([parameter]), new GradientScaler()];
    optimizer.step();
    expect(() => scaler.step(optimizer)).toThrow(
      expect.objectContaining({ code: 'OPTIMIZER', message: expect.stringContaining('skipsOnDevice') }),
    );
    expect(() => scaler.update()).toThrow(/call step\(\) first/);
    expect(() => scaler.hasSkipped(optimizer)).toThrow(/hasSkipped: call step\(\) first/);
  });

  it('that has no stepUnless at all is refused', () => {
    const duck = { parameters: () => [parameterOf([3], 1)], step: () => {} };
    expect(() => new GradientScaler().step(duck as never)).toThrow(
      /takes an optimizer, with .*stepUnless\(\)/,
    );
  });
});
