import { describe } from 'vitest';
import {
  type HostileTable,
  describeHostileArguments,
  describeHostileMethods,
  exempt,
} from '../../../tooling/hostile-arguments.ts';
import * as host from '../src/host.ts';
import * as cuda from '../src/index.ts';
import { CudaEvent } from '../src/driver/event.ts';
import { CudaStream } from '../src/driver/stream.ts';
import { Gpu } from '../src/gpu.ts';
import { GpuMemory } from '../src/memory/gpu-memory.ts';
import { MemoryPool } from '../src/memory/memory-pool.ts';
import { PinnedMemory } from '../src/memory/pinned-memory.ts';
import { hostCompilerVersion } from '../src/testing/emulated-compiler.ts';
import { openEmulatedGpu } from '../src/testing/emulated-gpu.ts';

const hot = exempt('reads or writes memory whose places were worked out before');
const error = exempt('is thrown, not called');
const checking = exempt('is the check itself');
const bits = exempt('converts one of many numbers, whose types were checked before');
const folders = exempt("is given a module's own address, or a path made from it");
const numbers = '5';

const hostTable: HostileTable = {
  ...Object.fromEntries(
    [
      'RooflineError',
      'DeviceError',
      'DisposedError',
      'OutOfMemoryError',
      'KernelCompileError',
      'LibraryNotFoundError',
    ].map((name) => [`new ${name}`, error]),
  ),
  lockFile: exempt('is given the number of a file just opened; any other may be one of this process'),
  checkOptions: checking,
  checkCount: checking,
  checkFlag: checking,
  checkFunction: checking,
  checkNumber: checking,
  checkObject: checking,
  checkText: checking,
  describeValue: exempt('takes everything'),
  wrongArgument: exempt('makes an error'),
  bytesInWords: exempt('words a number of bytes for a message'),
  nearestOf: { args: () => ['a', ['ab']], legal: { 0: 'a', 1: '[]' } },
  userPlace: exempt('takes nothing'),
  formatPlace: exempt('is given what userPlace gives'),
  fromBfloat16: bits,
  fromFloat16: bits,
  toBfloat16: bits,
  toFloat16: bits,
  makeFolders: folders,
  codeFolder: folders,
  packageFolder: folders,
  refuseAsync: exempt('is the check of a function that a caller was given'),
  refusePromise: exempt('takes whatever a function has returned'),
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
  ffi: { args: () => [] },
  // No such library is loaded, which it may be.
  keepLibrary: { args: () => ['libnone.so'], legal: { 0: 'a' } },
  'new HostMemory': { args: () => [64], legal: { 0: numbers } },
  'HostMemory#readUint64': hot,
  'HostMemory#readInt32': hot,
  'HostMemory#writeInt64': hot,
  addressOf: { args: () => [new Uint8Array(8)] },
};

const table: HostileTable = {
  ...Object.fromEntries(Object.entries(hostTable).filter(([name]) => /^new \w+Error$/.test(name))),
  // There may be no GPU.
  openGpu: {
    args: () => [2 ** 20],
    legal: {},
    named: 'openGpu|There is no cuda:|was not found|cuInit failed',
  },
  gpuCount: { args: () => [] },
  diagnose: { args: () => [] },
  kernelVariants: {
    args: () => [new URL('file:///k.cu'), 'copy', { from: 'pointer' }],
    legal: { 1: 'a', 2: '{}' },
  },
  // Of any text NVML itself says whether it is a GPU's; without it there is none.
  gpuClocks: { args: () => ['0000:18:00.0'], named: 'gpuClocks|libnvidia-ml|NVML' },
  'new KernelStruct': { args: () => ['Params', { x: 'pointer' }], legal: { 0: 'a', 1: '{}' } },
  packageKernels: { args: () => [import.meta.url] },
  compileKernels: {
    args: () => [[], 90],
    legal: { 0: '[]' },
    // 0.5 is older than what kernels are compiled for.
    named: 'compileKernels|compute capability',
  },
  loadLibrary: {
    args: () => [{ name: 'none', files: ['libnone.so'], remedy: 'none' }],
    // There is no such library.
    legal: {},
    named: 'loadLibrary|was not found',
  },
};

describe('host', () => describeHostileArguments(host, hostTable, host.RooflineError));
describe('cuda', () => describeHostileArguments(cuda, table, host.RooflineError));

let opened: Gpu | null = null;
const device = () => (opened ??= openEmulatedGpu());
const memory = () => device().allocateMemory(64);
const spec = () => ({
  source: new URL('../examples/add.cu', import.meta.url),
  name: 'add',
  parameters: 'pppi',
});
const stream = () => device().createStream();
const pinned = () => device().allocatePinned(64);
const crashing = exempt('an address that is none crashes the process');
const eventOptions = { 1: 'undefined {}', '1.timing': 'undefined' };
const description = () => ({
  ...{ dtype: 'float32', address: 4096, dimensions: [8, 8], strideBytes: [32], box: [8, 8] },
  ...{ elementStrides: [1, 1], swizzle: 'none', l2Promotion: 'none', outside: 'zero' },
});

const methods: HostileTable = {
  'Gpu#makeCurrent': { args: () => [device()] },
  // The text `a` names no kernel, and lists no parameters.
  'Gpu#kernel': {
    args: () => [device(), spec()],
    named: 'kernel|Kernel|CUresult|header',
  },
  'Gpu#allocateMemory': { args: () => [device(), 64], legal: { 1: numbers } },
  'Gpu#upload': { args: () => [device(), new Uint8Array(8)] },
  'GpuMemory#write': { args: () => [memory(), new Uint8Array(8), 0], legal: { 2: `undefined ${numbers}` } },
  'GpuMemory#read': { args: () => [memory(), new Uint8Array(8), 0], legal: { 2: `undefined ${numbers}` } },
  'GpuMemory#free': { args: () => [memory()] },
  'Gpu#createStream': {
    args: () => [device(), { priority: 'communication' }],
    legal: { 1: 'undefined {}', '1.priority': 'undefined' },
  },
  'Gpu#onStream': { args: () => [device(), device().stream, () => {}], legal: { 2: 'fn' } },
  'Gpu#createPool': {
    args: () => [device(), { segmentSize: 'exact' }],
    legal: { 1: 'undefined {}', '1.segmentSize': 'undefined' },
  },
  'Gpu#withPool': { args: () => [device(), device().createPool(), () => {}], legal: { 2: 'fn' } },
  'Gpu#recordStream': { args: () => [device(), device().allocateBlock(8), stream()] },
  'Gpu#allocatePinned': { args: () => [device(), 64], legal: { 1: numbers } },
  'Gpu#encodeTensorMap': {
    args: () => [device(), description(), new host.HostMemory(128), 0],
    // The emulated GPU encodes none.
    named: 'encodeTensorMap|Tensor map|not supported by the emulated GPU',
  },
  'Gpu#scratch': { args: () => [device(), 'kept', 64], legal: { 1: 'a', 2: numbers } },
  'Gpu#compileAhead': { args: () => [device(), []], legal: { 1: '[]' } },
  'Gpu#allocateBlock': { args: () => [device(), 64], legal: { 1: numbers } },
  'Gpu#freeBlock': { args: () => [device(), device().allocateBlock(8)] },
  'Gpu#recordEvent': { args: () => [device(), { timing: true }], legal: eventOptions },
  'Gpu#synchronize': { args: () => [device()] },
  'Gpu#memoryStatistics': { args: () => [device()] },
  'Gpu#resetPeakMemory': { args: () => [device()] },
  'Gpu#emptyCache': { args: () => [device()] },
  'Gpu#observeMemory': hot,
  'Gpu#memorySegments': { args: () => [device()] },
  'Gpu#properties': { args: () => [device()] },
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

const classes = { Gpu, GpuMemory, CudaStream, CudaEvent, MemoryPool, PinnedMemory };

describe.skipIf(!hostCompilerVersion())('a GPU', () =>
  describeHostileMethods(classes, methods, host.RooflineError),
);
