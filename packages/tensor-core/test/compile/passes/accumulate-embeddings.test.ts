import { describe } from 'vitest';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../src/testing.ts';
import { describeAccumulatedEmbeddings } from './accumulate-embeddings-cases.ts';

describe.skipIf(hostCompilerVersion() === null)('gradients of tables, added', () => {
  const device = openEmulatedDevice();
  describeAccumulatedEmbeddings(() => device);
});
