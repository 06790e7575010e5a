import { device, keep, mul, ones } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { GradientScaler, SGD } from '../../src/index.ts';
import { makesStep, parameterOf, setGradient } from '../parameters.ts';

describe('GradientScaler on CUDA', () => {
  // More tensors than one launch takes, with sizes that are no whole chunks.
  const shapes = Array.from({ length: 100 }, (_, i) => [37 * i + 1]);
  const setup = () => {
    const parameters = shapes.map((shape, i) => parameterOf(shape, i, 'cuda'));
    const gradients = parameters.map((parameter, i) => setGradient(parameter, 50 + i));
    return { parameters, gradients, optimizer: new SGD(parameters, { learningRate: 1 }) };
  };

  it('unscales all gradients, and finds none infinite', () => {
    const { parameters, gradients, optimizer } = setup();
    const scaler = new GradientScaler({ initialScale: 4096 });
    expect(makesStep(scaler, optimizer)).toBe(true);
    parameters.forEach(({ grad }, i) =>
      expect(grad!.toTypedArray()).toEqual(gradients[i]!.map((value) => value / 4096)),
    );
  });

  it.each([0, 40, 99])('skips the step if gradient %i overflowed', (bad) => {
    const { parameters, optimizer } = setup();
    const scaler = new GradientScaler();
    const before = parameters.map((parameter) => parameter.toTypedArray());
    parameters[bad]!.grad!.dispose();
    parameters[bad]!.grad = keep(mul(ones(shapes[bad]!, { device: device('cuda') }), Infinity));
    expect(makesStep(scaler, optimizer)).toBe(false);
    scaler.update();
    expect(scaler.currentScale).toBe(2 ** 15);
    expect(parameters.map((parameter) => parameter.toTypedArray())).toEqual(before);
  });
});
