import { DeviceError, LibraryNotFoundError } from '../base/errors.ts';
import { type NativeFunctions, declareFunctions, ffi } from '../base/host/ffi.ts';
import { HostMemory } from '../base/host/host-memory.ts';
import { driverStartError } from './driver-start-error.ts';
import { libraries, loadLibrary } from './library-search.ts';

// Handles and device addresses travel as numbers; results arrive through addresses of host memory.
const prototypes = {
  cuInit: 'int cuInit(uint flags)',
  cuDriverGetVersion: 'int cuDriverGetVersion(uintptr_t version)',
  cuDeviceGetCount: 'int cuDeviceGetCount(uintptr_t count)',
  cuDeviceGet: 'int cuDeviceGet(uintptr_t device, int ordinal)',
  cuDeviceGetName: 'int cuDeviceGetName(uintptr_t name, int length, int device)',
  cuDeviceGetUuid: 'int cuDeviceGetUuid_v2(uintptr_t uuid, int device)',
  cuDeviceGetPCIBusId: 'int cuDeviceGetPCIBusId(uintptr_t id, int length, int device)',
  cuDeviceGetAttribute: 'int cuDeviceGetAttribute(uintptr_t value, int attribute, int device)',
  cuDeviceTotalMem: 'int cuDeviceTotalMem_v2(uintptr_t bytes, int device)',
  cuDevicePrimaryCtxRetain: 'int cuDevicePrimaryCtxRetain(uintptr_t context, int device)',
  cuCtxSetCurrent: 'int cuCtxSetCurrent(uintptr_t context)',
  cuMemGetInfo: 'int cuMemGetInfo_v2(uintptr_t free, uintptr_t total)',
  cuMemAlloc: 'int cuMemAlloc_v2(uintptr_t address, size_t bytes)',
  cuMemFree: 'int cuMemFree_v2(uintptr_t address)',
  cuMemGetAddressRange: 'int cuMemGetAddressRange_v2(uintptr_t start, uintptr_t bytes, uintptr_t address)',
  cuIpcGetMemHandle: 'int cuIpcGetMemHandle(uintptr_t handle, uintptr_t address)',
  cuIpcOpenMemHandle: 'int cuIpcOpenMemHandle_v2(uintptr_t address, CUipcMemHandle handle, uint flags)',
  cuIpcCloseMemHandle: 'int cuIpcCloseMemHandle(uintptr_t address)',
  cuMemHostAlloc: 'int cuMemHostAlloc(uintptr_t address, size_t bytes, uint flags)',
  cuMemFreeHost: 'int cuMemFreeHost(uintptr_t address)',
  cuMemcpyAsync: 'int cuMemcpyAsync(uintptr_t to, uintptr_t from, size_t bytes, uintptr_t stream)',
  cuMemsetD8Async: 'int cuMemsetD8Async(uintptr_t address, uint8 value, size_t count, uintptr_t stream)',
  cuModuleLoadData: 'int cuModuleLoadData(uintptr_t module, const void *image)',
  cuModuleGetFunction: 'int cuModuleGetFunction(uintptr_t function, uintptr_t module, const char *name)',
  cuFuncSetAttribute: 'int cuFuncSetAttribute(uintptr_t function, int attribute, int value)',
  cuFuncGetAttribute: 'int cuFuncGetAttribute(uintptr_t value, int attribute, uintptr_t function)',
  cuLaunchKernel:
    'int cuLaunchKernel(uintptr_t function, uint gridX, uint gridY, uint gridZ, uint blockX, uint blockY, ' +
    'uint blockZ, uint sharedBytes, uintptr_t stream, uintptr_t parameters, uintptr_t extra)',
  cuLaunchKernelEx:
    'int cuLaunchKernelEx(uintptr_t config, uintptr_t function, uintptr_t parameters, uintptr_t extra)',
  cuStreamCreateWithPriority: 'int cuStreamCreateWithPriority(uintptr_t stream, uint flags, int priority)',
  cuStreamSynchronize: 'int cuStreamSynchronize(uintptr_t stream)',
  cuStreamWaitEvent: 'int cuStreamWaitEvent(uintptr_t stream, uintptr_t event, uint flags)',
  cuLaunchHostFunc: 'int cuLaunchHostFunc(uintptr_t stream, uintptr_t function, uintptr_t argument)',
  cuEventCreate: 'int cuEventCreate(uintptr_t event, uint flags)',
  cuEventRecord: 'int cuEventRecord(uintptr_t event, uintptr_t stream)',
  cuEventQuery: 'int cuEventQuery(uintptr_t event)',
  cuEventSynchronize: 'int cuEventSynchronize(uintptr_t event)',
  cuEventElapsedTime: 'int cuEventElapsedTime(uintptr_t ms, uintptr_t start, uintptr_t end)',
  cuStreamBeginCapture: 'int cuStreamBeginCapture_v2(uintptr_t stream, int mode)',
  cuStreamEndCapture: 'int cuStreamEndCapture(uintptr_t stream, uintptr_t graph)',
  cuStreamGetCaptureInfo:
    'int cuStreamGetCaptureInfo_v3(uintptr_t stream, uintptr_t status, uintptr_t id, uintptr_t graph, ' +
    'uintptr_t dependencies, uintptr_t edges, uintptr_t count)',
  cuGraphInstantiate:
    'int cuGraphInstantiateWithFlags(uintptr_t executable, uintptr_t graph, uint64_t flags)',
  cuGraphLaunch: 'int cuGraphLaunch(uintptr_t executable, uintptr_t stream)',
  cuGraphExecKernelNodeSetParams:
    'int cuGraphExecKernelNodeSetParams_v2(uintptr_t executable, uintptr_t node, uintptr_t parameters)',
  cuGraphNodeGetType: 'int cuGraphNodeGetType(uintptr_t node, uintptr_t type)',
  cuGraphGetNodes: 'int cuGraphGetNodes(uintptr_t graph, uintptr_t nodes, uintptr_t count)',
  cuGraphDestroy: 'int cuGraphDestroy(uintptr_t graph)',
  cuGraphExecDestroy: 'int cuGraphExecDestroy(uintptr_t executable)',
  cuTensorMapEncodeTiled:
    'int cuTensorMapEncodeTiled(uintptr_t map, int dtype, uint rank, uintptr_t address, uintptr_t dims, ' +
    'uintptr_t strides, uintptr_t box, uintptr_t elementStrides, int interleave, int swizzle, int l2Promotion, int fill)',
} as const;

/** Bytes of a CUipcMemHandle, which is passed by value. */
export const peerHandleBytes = 64;

/** What of libcuda is called. */
export type DriverFunctions = NativeFunctions<typeof prototypes>;

/** Names a CUresult: what cuGetErrorName and cuGetErrorString say. */
export type DescribeResult = (result: number) => string;

// The results that callers handle.
export const outOfMemory = 2;
export const notReady = 600;

// Faults of a kernel surface in whatever call comes next.
const kernelFaults = new Set([700, 714, 715, 716, 717, 718, 719]);

/** libcuda's functions, and the host memory through which they give results. */
export class CudaDriver {
  readonly functions: DriverFunctions;
  /** For results of the call at hand: read them before the next one. */
  readonly result = new HostMemory(1024);
  readonly #describe: DescribeResult;

  constructor(functions: DriverFunctions, describe: DescribeResult) {
    this.functions = functions;
    this.#describe = describe;
  }

  /** Throws a DeviceError unless `result` is CUDA_SUCCESS. */
  check(result: number, call: string): void {
    if (result !== 0) throw this.error(result, call);
  }

  error(result: number, call: string): DeviceError {
    const hint = kernelFaults.has(result)
      ? ' A kernel launched earlier failed; set CUDA_LAUNCH_BLOCKING=1 to see which. The process cannot use this GPU any more.'
      : '';
    return new DeviceError(`${call} failed: ${this.#describe(result)}.${hint}`);
  }

  /** Calls a function whose first argument receives a handle or an address. */
  handleFrom(call: string, invoke: (resultAddress: number) => number): number {
    this.check(invoke(this.result.address), call);
    return this.result.readUint64(0);
  }

  /** Calls a function whose first argument receives an int. */
  intFrom(call: string, invoke: (resultAddress: number) => number): number {
    this.check(invoke(this.result.address), call);
    return this.result.readInt32(0);
  }
}

let driver: CudaDriver | null = null;
let hasStructs = false;

/** Types that functions take by value; a second try to load the library finds them declared. */
function declareStructs(): void {
  if (!hasStructs)
    ffi().struct('CUipcMemHandle', { reserved: ffi().array('uint8', peerHandleBytes, 'Typed') });
  hasStructs = true;
}

/** libcuda, loaded and initialised once. Throws LibraryNotFoundError without a driver, UnusableLibraryError without a GPU. */
export function loadDriver(): CudaDriver {
  if (driver) return driver;
  const { handle, path } = loadLibrary(libraries.cuda);
  declareStructs();
  const missing = (name: string) => new DeviceError(`${path} has no ${name}: update NVIDIA's driver.`);
  const functions = declareFunctions(handle, prototypes, missing);
  const name = handle.func('int cuGetErrorName(int result, _Out_ const char **text)');
  const text = handle.func('int cuGetErrorString(int result, _Out_ const char **text)');
  const describe = (result: number) => {
    const [errorName, errorText] = [[null], [null]] as [(string | null)[], (string | null)[]];
    name(result, errorName);
    text(result, errorText);
    return `${errorName[0] ?? `CUresult ${result}`} (${errorText[0] ?? 'unknown'})`;
  };
  const loaded = new CudaDriver(functions, describe);
  const result = functions.cuInit(0);
  if (result !== 0) throw driverStartError(result, loaded.error(result, 'cuInit').message);
  driver = loaded;
  return driver;
}

/** The driver's CUDA version, such as 13000 for 13.0. */
export function driverVersion(driver: CudaDriver): number {
  return driver.intFrom('cuDriverGetVersion', (out) => driver.functions.cuDriverGetVersion(out));
}

/** How many GPUs the driver shows; 0 without a driver. Never throws. */
export function gpuCount(): number {
  try {
    const driver = loadDriver();
    return driver.intFrom('cuDeviceGetCount', (out) => driver.functions.cuDeviceGetCount(out));
  } catch (error) {
    if (error instanceof LibraryNotFoundError || error instanceof DeviceError) return 0;
    throw error;
  }
}
