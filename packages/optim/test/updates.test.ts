import { device } from '@roofline/tensor-core';
import { hostCompilerVersion, openEmulatedDevice } from '@roofline/tensor-core/testing';
import { describe, expect, it } from 'vitest';
import { AdamW, SGD } from '../src/index.ts';
import { describeLifetimes } from './lifetime-cases.ts';
import { parameterOf, setGradient } from './parameters.ts';
import { describeUpdates } from './update-cases.ts';

describe('on the CPU', () => {
  describeUpdates(device('cpu'));
  describeLifetimes(device('cpu'));
});

describe.skipIf(!hostCompilerVersion())('on the emulated GPU (needs g++)', { timeout: 300_000 }, () => {
  const emulated = openEmulatedDevice();
  describeUpdates(emulated);
  describeLifetimes(emulated);

  it('launches nothing over empty tensors, which CUDA would refuse', () => {
    let launches = 0;
    const counted = openEmulatedDevice(2 ** 30, () => launches++);
    const parameters = [parameterOf([0], 1, counted), parameterOf([2, 0], 2, counted)];
    for (const parameter of parameters) setGradient(parameter, 3);
    new AdamW(parameters).step();
    new SGD(parameters, { momentum: 0.9 }).step();
    expect(launches).toBe(0);
  });
});
