import { describe } from 'vitest';
import {
  type HostileTable,
  describeHostileArguments,
  describeHostileMethods,
  exempt,
} from '../../../../tooling/hostile-arguments.ts';
import { CudaDevice } from '../../src/backends/cuda/device.ts';
import { CudaEvent } from '../../src/cuda/driver/event.ts';
import { CudaStream } from '../../src/cuda/driver/stream.ts';
import { MemoryPool } from '../../src/cuda/memory/memory-pool.ts';
import { PinnedMemory } from '../../src/cuda/memory/pinned-memory.ts';
import * as t from '../../src/index.ts';
import * as native from '../../src/native.ts';
import { hostCompilerVersion, openEmulatedDevice } from '../../src/testing.ts';

const launching = exempt('runs at every launch, with what a lowering has worked out');
const hot = exempt('reads or writes memory beneath ops: its arguments come from them');
const numbers = '5';

const table: HostileTable = {
  packageKernels: { args: () => [import.meta.url] },
  computeType: { args: () => ['float32'] },
  storageType: { args: () => ['float32'] },
  compileKernels: {
    args: () => [[], 90],
    legal: { 0: '[]' },
    // 0.5 is older than what kernels are compiled for.
    named: 'compileKernels|compute capability',
  },
  kernelVariants: { args: () => ['copy.cu', 'copy', 'pp'], legal: { 0: 'a', 1: 'a', 2: 'a' } },
  denseCopy: launching,
  launchRows: launching,
  rowPlan: launching,
  sameShape: exempt('is asked about the shapes of tensors, which are right'),
  refuseAsync: exempt('is the check of a function that a caller was given'),
  currentTrace: exempt('takes nothing'),
  refusePromise: exempt('takes whatever a function has returned'),
  shareMemory: exempt('is asked about tensors, which are right'),
  valueBeyond: exempt('is asked about tensors, which are right'),
  vectorLength: launching,
  cudaDevice: { args: () => [openEmulatedDevice()] },
  loadLibrary: {
    args: () => [{ name: 'none', files: ['libnone.so'], remedy: 'none' }],
    // There is no such library.
    legal: {},
    named: 'loadLibrary|was not found',
  },
  declareFunctions: {
    args: () => [{ func: () => () => 0 }, { f: 'int f()' }, () => new Error('none')],
    legal: {
      ...{
        '0': '{} option duck',
        '0.func': 'undefined null 5 a {} [] NaN Infinity symbol 1n fn option duck',
      },
      ...{
        '1': '{} option duck',
        '1.f': 'undefined null 5 a {} [] NaN Infinity symbol 1n fn option duck',
        '2': 'fn',
      },
    },
  },
  // Of any text NVML itself says whether it is a GPU's; without it there is none.
  gpuClocks: { args: () => ['0000:18:00.0'], named: 'gpuClocks|libnvidia-ml|NVML' },
  ffi: { args: () => [] },
  // No such library is loaded, which it may be.
  keepLibrary: { args: () => ['libnone.so'], legal: { 0: 'a' } },
  'new HostMemory': { args: () => [64], legal: { 0: numbers } },
  'HostMemory#readUint64': hot,
  'HostMemory#readInt32': hot,
  'HostMemory#writeInt64': hot,
  addressOf: { args: () => [new Uint8Array(8)] },
};

describe('native', () => describeHostileArguments(native, table, t.RooflineError));

let opened: CudaDevice | null = null;
const device = () => (opened ??= openEmulatedDevice());
const stream = () => device().createStream();
const pinned = () => device().allocatePinned(64);
const crashing = exempt('an address that is none crashes the process');
const eventOptions = { 1: 'undefined {}', '1.timing': 'undefined' };
const description = () => ({
  ...{ dtype: 'float32', address: 4096, dimensions: [8, 8], strideBytes: [32], box: [8, 8] },
  ...{ elementStrides: [1, 1], swizzle: 'none', l2Promotion: 'none', outside: 'zero' },
});

const methods: HostileTable = {
  'CudaDevice#makeCurrent': { args: () => [device()] },
  'CudaDevice#createStream': {
    args: () => [device(), { priority: 'communication' }],
    legal: { 1: 'undefined {}', '1.priority': 'undefined' },
  },
  'CudaDevice#onStream': { args: () => [device(), device().stream, () => {}], legal: { 2: 'fn' } },
  'CudaDevice#createPool': {
    args: () => [device(), { segmentSize: 'exact' }],
    legal: { 1: 'undefined {}', '1.segmentSize': 'undefined' },
  },
  'CudaDevice#withPool': { args: () => [device(), device().createPool(), () => {}], legal: { 2: 'fn' } },
  'CudaDevice#recordStream': { args: () => [device(), device().allocateBlock(8), stream()] },
  'CudaDevice#allocatePinned': { args: () => [device(), 64], legal: { 1: numbers } },
  'CudaDevice#encodeTensorMap': {
    args: () => [device(), description(), new native.HostMemory(128), 0],
    // The emulated GPU encodes none.
    named: 'encodeTensorMap|Tensor map|not supported by the emulated GPU',
  },
  'CudaDevice#scratch': { args: () => [device(), 'kept', 64], legal: { 1: 'a', 2: numbers } },
  'CudaDevice#compileAhead': { args: () => [device(), []], legal: { 1: '[]' } },
  'CudaDevice#allocate': hot,
  'CudaDevice#allocateAt': hot,
  'CudaDevice#discard': hot,
  'CudaDevice#awaitFreedMemory': { args: () => [device()] },
  'CudaDevice#free': hot,
  'CudaDevice#allocateBlock': { args: () => [device(), 64], legal: { 1: numbers } },
  'CudaDevice#freeBlock': { args: () => [device(), device().allocateBlock(8)] },
  'CudaDevice#write': hot,
  'CudaDevice#read': hot,
  'CudaDevice#run': hot,
  'CudaDevice#recordEvent': { args: () => [device(), { timing: true }], legal: eventOptions },
  'CudaDevice#synchronize': { args: () => [device()] },
  'CudaDevice#memoryStatistics': { args: () => [device()] },
  'CudaDevice#resetPeakMemory': { args: () => [device()] },
  'CudaDevice#emptyCache': { args: () => [device()] },
  'CudaDevice#holdBackOtherStreams': { args: () => [device()] },
  'CudaDevice#observeMemory': hot,
  'CudaDevice#memorySegments': { args: () => [device()] },
  'CudaDevice#properties': { args: () => [device()] },
  'CudaStream#synchronize': { args: () => [stream()] },
  'CudaStream#recordEvent': { args: () => [stream(), { timing: true }], legal: eventOptions },
  'CudaStream#waitFor': { args: () => [stream(), device().recordEvent()] },
  'CudaStream#copy': crashing,
  'CudaStream#fill': crashing,
  'CudaStream#launchHostFunction': crashing,
  'CudaEvent#hasCompleted': { args: () => [device().recordEvent()] },
  'CudaEvent#synchronize': { args: () => [device().recordEvent()] },
  'CudaEvent#elapsedMs': { args: () => [device().recordEvent(), device().recordEvent()] },
  'CudaEvent#dispose': { args: () => [device().recordEvent()] },
  'MemoryPool#blocksOf': hot,
  'MemoryPool#allBlocks': hot,
  'MemoryPool#holdFree': { args: () => [device().createPool(), 'kept'], legal: { 1: 'a' } },
  'MemoryPool#emptyCache': { args: () => [device().createPool()] },
  'MemoryPool#release': { args: () => [device().createPool()] },
  'PinnedMemory#free': { args: () => [pinned()] },
};

const classes = { CudaDevice, CudaStream, CudaEvent, MemoryPool, PinnedMemory };

describe.skipIf(!hostCompilerVersion())('a GPU', { timeout: 300_000 }, () =>
  describeHostileMethods(classes, methods, t.RooflineError),
);
