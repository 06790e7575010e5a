import { cudaAvailable, device } from '@roofline/tensor-core';
import { cudaDevice } from '@roofline/tensor-core/native';
import { describe } from 'vitest';
import { describeEarlyUpdates } from '../early-updates-cases.ts';

/** Products of so many rows and columns are quick, and no L2 cache up to 128 MiB holds two of their gradients. */
const width = 4096;

describe.skipIf(!cudaAvailable())('early updates, on a GPU', () => {
  if (cudaAvailable()) describeEarlyUpdates(cudaDevice(device('cuda')), width);
});
