import { device, mul, observeOps, scope, sum } from '@roofline/tensor-core';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { describe, expect, it } from 'vitest';
import { AdamW, GradientScaler, SGD } from '../src/index.ts';
import { describeLifetimes } from './lifetime-cases.ts';
import { parameterOf, setGradient } from './parameters.ts';
import { describeCompiledSteps } from './compiled-step-cases.ts';
import { describeUpdates } from './update-cases.ts';

describe('on the CPU', () => {
  describeUpdates(device('cpu'));
  describeLifetimes(device('cpu'));
  describeCompiledSteps(device('cpu'));
});

describe.skipIf(!hostCompilerVersion())('on the emulated GPU (needs g++)', () => {
  const emulated = openEmulatedDevice();
  describeUpdates(emulated);
  describeLifetimes(emulated);
  describeCompiledSteps(emulated);

  it('launches nothing over empty tensors, which CUDA would refuse', () => {
    let launches = 0;
    const counted = openEmulatedDevice(2 ** 30, () => launches++);
    const parameters = [parameterOf([0], 1, counted), parameterOf([2, 0], 2, counted)];
    for (const parameter of parameters) setGradient(parameter, 3);
    new AdamW(parameters).step();
    new SGD(parameters, { momentum: 0.9 }).step();
    expect(launches).toBe(0);
  });

  it('updates all tensors by one op of a name, which marks each of them as written', () => {
    const counted = openEmulatedDevice(2 ** 30);
    const parameters = [1, 2, 3].map((size) => parameterOf([size], size, counted));
    for (const parameter of parameters) setGradient(parameter, 3);
    const names: string[] = [];
    const stop = observeOps({ before: ({ name }) => void names.push(name) });
    for (const [name, optimizer] of [
      ['adamw', new AdamW(parameters)],
      ['sgd', new SGD(parameters)],
      ['sgdMomentum', new SGD(parameters, { momentum: 0.9 })],
    ] as const) {
      scope(() => {
        const squares = parameters.map((parameter) => sum(mul(parameter, parameter)));
        names.length = 0;
        optimizer.step();
        expect(names.filter((made) => made.startsWith(name))).toEqual([name]);
        for (const square of squares) expect(() => square.backward()).toThrow('in place');
      });
    }
    names.length = 0;
    new GradientScaler().unscale(new SGD(parameters));
    expect(names.filter((name) => name === 'unscale')).toEqual(['unscale']);
    stop();
  });
});
