import { cudaAvailable, device } from '@roofline/tensor-core';
import { cudaDevice } from '@roofline/tensor-core/kernel-api';
import { describe } from 'vitest';
import { describeLowPrecisionCopies } from '../low-precision-copies-cases.ts';

describe.skipIf(!cudaAvailable())('casts of parameters, on a GPU', () => {
  if (cudaAvailable()) describeLowPrecisionCopies(cudaDevice(device('cuda')));
});
