import { cudaAvailable, device } from '@roofline/tensor-core';
import { cudaDevice } from '@roofline/tensor-core/kernel-api';
import { describe } from 'vitest';
import { describeEarlyUpdates } from '../early-updates-cases.ts';

describe.skipIf(!cudaAvailable())('early updates, on a GPU', () => {
  if (!cudaAvailable()) return;
  const gpu = cudaDevice(device('cuda'));
  const elements = gpu.facts.l2Bytes / 2 / 4;
  describeEarlyUpdates(gpu, 64 * Math.ceil(Math.sqrt(elements) / 64));
});
