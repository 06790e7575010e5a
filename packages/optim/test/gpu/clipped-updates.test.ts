import { cudaAvailable, device } from '@roofline/tensor-core';
import { cudaDevice } from '@roofline/tensor-core/kernel-api';
import { describe } from 'vitest';
import { describeClippedUpdates } from '../clipped-updates-cases.ts';

describe.skipIf(!cudaAvailable())('clipped updates, on a GPU', () => {
  if (cudaAvailable()) describeClippedUpdates(cudaDevice(device('cuda')), 256);
});
