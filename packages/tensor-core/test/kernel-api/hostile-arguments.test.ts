import { hostCompilerVersion } from '@roofline/cuda/testing';
import { describe } from 'vitest';
import {
  type HostileTable,
  describeHostileArguments,
  describeHostileMethods,
  exempt,
} from '../../../../tooling/hostile-arguments.ts';
import { CudaDevice } from '../../src/backends/cuda/device.ts';
import * as t from '../../src/index.ts';
import * as kernelApi from '../../src/kernel-api.ts';
import { openEmulatedDevice } from '../../src/testing.ts';

const launching = exempt('runs at every launch, with what a lowering has worked out');
const hot = exempt('reads or writes memory beneath ops: its arguments come from them');

const table: HostileTable = {
  computeType: { args: () => ['float32'] },
  storageType: { args: () => ['float32'] },
  denseCopy: launching,
  launchRows: launching,
  rowPlan: launching,
  sameShape: exempt('is asked about the shapes of tensors, which are right'),
  currentTrace: exempt('takes nothing'),
  asOneCall: { args: () => ['name', () => []], legal: { 0: 'a', 1: 'fn' } },
  notFollowed: { args: () => [() => 1], legal: { 0: 'fn' } },
  shareMemory: exempt('is asked about tensors, which are right'),
  valueBeyond: exempt('is asked about tensors, which are right'),
  vectorLength: launching,
  cudaDevice: { args: () => [openEmulatedDevice()] },
};

describe('kernel-api', () => describeHostileArguments(kernelApi, table, t.RooflineError));

const methods: HostileTable = {
  'CudaDevice#allocate': hot,
  'CudaDevice#allocateAt': hot,
  'CudaDevice#discard': hot,
  'CudaDevice#awaitFreedMemory': { args: () => [openEmulatedDevice()] },
  'CudaDevice#free': hot,
  'CudaDevice#write': hot,
  'CudaDevice#read': hot,
  'CudaDevice#run': hot,
  'CudaDevice#holdBackOtherStreams': { args: () => [openEmulatedDevice()] },
};

// What it has of `Gpu`, the tests of `@roofline/cuda` hold.
describe.skipIf(!hostCompilerVersion())('a GPU', () =>
  describeHostileMethods({ CudaDevice }, methods, t.RooflineError),
);
