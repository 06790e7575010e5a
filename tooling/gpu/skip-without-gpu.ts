import { beforeEach } from 'vitest';
import { cudaAvailable } from '../../packages/tensor-core/src/backends/cuda/open-device.ts';

const usable = cudaAvailable();

beforeEach(({ skip }) => skip(!usable, 'no usable GPU'));
