import { type Tensor, fillInPlace, mul, ones, sum } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { GradientScaler, OptimizerStateError, SGD } from '../../src/index.ts';
import { makesStep, parameterOf, setGradient } from '../parameters.ts';

const shapes = [[3], [40, 50], []];
const setup = (options = {}) => {
  const parameters = shapes.map((shape, i) => parameterOf(shape, i));
  return {
    parameters,
    optimizer: new SGD(parameters, { learningRate: 0.5 }),
    scaler: new GradientScaler({ initialScale: 1024, growthInterval: 2, ...options }),
  };
};
const values = (parameters: readonly Tensor[]) => parameters.map((parameter) => parameter.toFlatArray());

describe('GradientScaler', () => {
  it('scales the loss, and unscales the gradients before the step', () => {
    const { scaler } = setup();
    const parameter = parameterOf([4], 1);
    const [before, optimizer] = [parameter.toFlatArray(), new SGD([parameter], { learningRate: 0.5 })];
    scaler.scale(sum(mul(parameter, 3))).backward();
    expect(parameter.grad!.toFlatArray()).toEqual([3072, 3072, 3072, 3072]);
    expect(makesStep(scaler, optimizer)).toBe(true);
    expect(parameter.grad!.toFlatArray()).toEqual([3, 3, 3, 3]);
    parameter.toFlatArray().forEach((value, i) => expect(value).toBeCloseTo(before[i]! - 1.5, 6));
  });

  it('skips a step whose gradients overflowed on another rank, also where this one has none', () => {
    for (const hasGradients of [true, false]) {
      const ranks = { sum() {}, max: (x: Tensor) => fillInPlace(x, 1) };
      const { parameters, optimizer, scaler } = setup({ ranks });
      if (hasGradients) parameters.forEach((parameter) => setGradient(parameter, 3));
      const before = values(parameters);
      expect(makesStep(scaler, optimizer)).toBe(false);
      expect(values(parameters)).toEqual(before);
      scaler.update();
      expect(scaler.currentScale).toBe(512);
    }
  });

  it.each([Infinity, -Infinity, NaN])('skips a step with a gradient of %f, and backs off', (bad) => {
    const { parameters, optimizer, scaler } = setup();
    const before = values(parameters);
    parameters.forEach((parameter, i) => setGradient(parameter, i));
    parameters[1]!.grad!.dispose();
    parameters[1]!.grad = mul(ones([40, 50]), bad);
    expect(makesStep(scaler, optimizer)).toBe(false);
    scaler.update();
    expect(values(parameters)).toEqual(before);
    expect(scaler.currentScale).toBe(512);
    parameters.forEach((parameter, i) => setGradient(parameter, i));
    expect(makesStep(scaler, optimizer)).toBe(true);
  });

  it('grows after as many good steps as growthInterval says, one bad step apart or not', () => {
    const { parameters, optimizer, scaler } = setup();
    const step = (bad = false) => {
      parameters.forEach((parameter, i) => setGradient(parameter, i));
      if (bad) {
        parameters[0]!.grad!.dispose();
        parameters[0]!.grad = mul(ones([3]), Infinity);
      }
      scaler.step(optimizer);
      scaler.update();
      return scaler.currentScale;
    };
    expect([step(), step(true), step(), step(), step()]).toEqual([1024, 512, 512, 1024, 1024]);
    const restored = new GradientScaler();
    restored.loadStateDict(scaler.stateDict());
    expect(restored.stateDict()).toEqual({ scale: 1024, growthTracker: 1 });
  });

  it('starts at 65536, doubles after 2000 good steps, and halves after a bad one', () => {
    const parameter = parameterOf([], 1);
    const [optimizer, scaler] = [new SGD([parameter]), new GradientScaler()];
    const step = (value: number) => {
      setGradient(parameter, 0, Float32Array.of(value));
      scaler.step(optimizer);
      scaler.update();
      return scaler.currentScale;
    };
    expect(scaler.stateDict()).toEqual({ scale: 65536, growthTracker: 0 });
    for (let i = 1; i < 2000; i++) step(1);
    expect(scaler.stateDict()).toEqual({ scale: 65536, growthTracker: 1999 });
    expect(step(1)).toBe(131072);
    expect(scaler.stateDict().growthTracker).toBe(0);
    expect(step(1)).toBe(131072);
    expect(step(Infinity)).toBe(65536);
    expect(scaler.stateDict().growthTracker).toBe(0);
  });

  it('does not grow to infinity, as float32 knows it', () => {
    const parameter = parameterOf([], 1);
    const options = { initialScale: 2 ** 126, growthInterval: 1 };
    const [optimizer, scaler] = [new SGD([parameter]), new GradientScaler(options)];
    const scales = [1, 2, 3].map(() => {
      setGradient(parameter, 0, Float32Array.of(1));
      scaler.step(optimizer);
      scaler.update();
      return scaler.currentScale;
    });
    expect(scales).toEqual([2 ** 127, 2 ** 127, 2 ** 127]);
    expect(scaler.stateDict().growthTracker).toBe(0);
  });

  it('backs off once for an update in which one of two optimizers overflowed', () => {
    const [good, bad] = [parameterOf([], 1), parameterOf([], 2)];
    const optimizers = [good, bad].map((parameter) => new SGD([parameter]));
    const scaler = new GradientScaler({ initialScale: 8, growthInterval: 1 });
    setGradient(good, 0, Float32Array.of(1));
    setGradient(bad, 0, Float32Array.of(NaN));
    expect(optimizers.map((optimizer) => makesStep(scaler, optimizer))).toEqual([true, false]);
    scaler.update();
    expect(scaler.currentScale).toBe(4);
    setGradient(bad, 0, Float32Array.of(1));
    expect(optimizers.map((optimizer) => makesStep(scaler, optimizer))).toEqual([true, true]);
    scaler.update();
    expect(scaler.currentScale).toBe(8);
  });

  it('backs off for gradients that overflowed and were unscaled, though no step was made by them', () => {
    const [good, bad] = [parameterOf([], 1), parameterOf([], 2)];
    const scaler = new GradientScaler({ initialScale: 8, growthInterval: 1 });
    setGradient(good, 0, Float32Array.of(1));
    setGradient(bad, 0, Float32Array.of(Infinity));
    scaler.unscale(new SGD([bad]));
    scaler.step(new SGD([good]));
    scaler.update();
    expect(scaler.stateDict()).toEqual({ scale: 4, growthTracker: 0 });
  });

  it.each([
    [1, { scale: 16, growthTracker: 2 }],
    [NaN, { scale: 8, growthTracker: 0 }],
  ])(
    'adapts a state that is loaded between a step of the gradient %f and its update',
    (gradient, adapted) => {
      const parameter = parameterOf([], 1);
      const [optimizer, scaler] = [new SGD([parameter]), new GradientScaler({ growthInterval: 3 })];
      setGradient(parameter, 0, Float32Array.of(gradient));
      scaler.step(optimizer);
      scaler.loadStateDict({ scale: 16, growthTracker: 1 });
      scaler.update();
      expect(scaler.stateDict()).toEqual(adapted);
      expect(() => scaler.update()).toThrow(/call step\(\) first/);
    },
  );

  it.each([
    [{ initialScale: 0 }, /initialScale must be positive and finite, not 0/],
    [{ growthFactor: 1 }, /growthFactor must be finite and above 1, not 1/],
    [{ backoffFactor: 0 }, /backoffFactor must be between 0 and 1, not 0/],
    [{ backoffFactor: 1 }, /backoffFactor must be between 0 and 1, not 1/],
    [{ growthInterval: 0 }, /growthInterval must be a whole number above 0, not 0/],
    [{ growthInterval: 1.5 }, /not 1.5/],
  ])('refuses %o', (options, message) => {
    expect(() => new GradientScaler(options)).toThrow(message);
  });

  it.each([
    { scale: 0, growthTracker: 0 },
    { scale: NaN, growthTracker: 0 },
    { scale: Infinity, growthTracker: 0 },
    { scale: 1e300, growthTracker: 0 },
    { scale: 1e-300, growthTracker: 0 },
    { scale: 1, growthTracker: 1e300 },
    { scale: 1, growthTracker: -1 },
    { scale: 1, growthTracker: 0.5 },
  ])('refuses the state %o, and keeps its own', (state) => {
    const scaler = new GradientScaler();
    expect(() => scaler.loadStateDict(state)).toThrow(OptimizerStateError);
    expect(scaler.stateDict()).toEqual({ scale: 65536, growthTracker: 0 });
  });

  it('unscales once for clipping, and refuses what is out of turn', () => {
    const { parameters, optimizer, scaler } = setup();
    expect(() => scaler.unscale(optimizer)).toThrow(/no parameter has a gradient/);
    expect(() => scaler.update()).toThrow(/call step\(\) first/);
    const gradient = setGradient(parameters[0]!, 3);
    scaler.unscale(optimizer);
    expect(parameters[0]!.grad!.toFlatArray()).toEqual(Array.from(gradient, (value) => value / 1024));
    expect(() => scaler.unscale(optimizer)).toThrow(/have been unscaled/);
    scaler.step(optimizer);
    expect(parameters[0]!.grad!.toFlatArray()).toEqual(Array.from(gradient, (value) => value / 1024));
    expect(() => scaler.step(optimizer)).toThrow(/has made its step/);
  });

  it('lets everything through when it is not enabled', () => {
    const { parameters, optimizer, scaler } = setup({ enabled: false });
    const loss = ones([]);
    expect(scaler.scale(loss)).toBe(loss);
    setGradient(parameters[0]!, 1);
    const before = parameters[0]!.toFlatArray();
    expect(makesStep(scaler, optimizer)).toBe(true);
    scaler.update();
    expect(parameters[0]!.toFlatArray()).not.toEqual(before);
    expect(scaler.currentScale).toBe(1);
  });
});
