import type { CudaDevice } from '@roofline/tensor-core/kernel-api';
import { type CudaStream, libraries, loadLibrary } from '@roofline/cuda';
import { HostMemory, ffi } from '@roofline/cuda/host';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';

/** The stand-in for NCCL as a rank's test sees it. */
export interface StubNccl {
  /** All calls so far, a line each. */
  log(): string;
  /** What broke NCCL's rules, a line each. */
  faults(): string;
  /** The result of the next call. */
  failNext(result: number): void;
  /** The result of the next call that is captured. */
  failNextCaptured(result: number): void;
  /** What all communicators report from now on. */
  asyncError(result: number): void;
  /** How many communicators have been aborted. */
  aborted(): number;
}

/** A GPU emulated on the CPU, on whose streams the stand-in puts its calls. */
export function openEmulatedGpu(seed = 1): { device: CudaDevice; nccl: StubNccl } {
  const device = openEmulatedDevice(undefined, undefined, undefined, seed);
  const streams = new Map<number, CudaStream>([[device.stream.handle, device.stream]]);
  const createStream = device.createStream.bind(device);
  device.createStream = () => {
    const stream = createStream();
    streams.set(stream.handle, stream);
    return stream;
  };
  const { handle } = loadLibrary(libraries.nccl);
  const graphs = watchGraphs(device, handle.func('void stub_set_graphs(int count)'));
  const enqueueType = ffi().proto('int StubEnqueue(uint64_t stream, uint64_t function, uint64_t argument)');
  const enqueue = ffi().register((stream: number, hostFunction: number, argument: number) => {
    streams.get(Number(stream))!.launchHostFunction(Number(hostFunction), Number(argument));
    return graphs.noteCall(Number(stream)) ? 1 : 0;
  }, ffi().pointer(enqueueType));
  handle.func('void stub_set_enqueue(StubEnqueue *to)')(enqueue);
  const nccl = {
    log: handle.func('const char *stub_log()'),
    faults: handle.func('const char *stub_faults()'),
    failNext: handle.func('void stub_fail_next(int result)'),
    failNextCaptured: handle.func('void stub_fail_next_captured(int result)'),
    asyncError: handle.func('void stub_async_error(int result)'),
    aborted: handle.func('int stub_aborted()'),
  };
  return { device, nccl: nccl as unknown as StubNccl };
}

/** Tells the stand-in how many CUDA graphs have calls of it. */
function watchGraphs(
  gpu: CudaDevice,
  tell: (count: number) => void,
): { /** Whether a call is captured. */ noteCall(stream: number): boolean } {
  const withCalls = new Set<number>();
  let hasCall = false;
  const functions = gpu.parts.driver.functions as Record<string, (...arguments_: number[]) => number>;
  const { cuGraphInstantiate, cuGraphExecDestroy, cuStreamGetCaptureInfo } = functions;
  const out = new HostMemory(48);
  functions['cuGraphInstantiate'] = (...arguments_) => {
    const result = cuGraphInstantiate!(...arguments_);
    if (hasCall) withCalls.add(arguments_[1]!);
    hasCall = false;
    tell(withCalls.size);
    return result;
  };
  functions['cuGraphExecDestroy'] = (graph) => {
    withCalls.delete(graph!);
    tell(withCalls.size);
    return cuGraphExecDestroy!(graph!);
  };
  return {
    noteCall(stream) {
      const places = Array.from({ length: 6 }, (_, i) => out.address + 8 * i);
      cuStreamGetCaptureInfo!(stream, ...places);
      const isCaptured = out.readInt32(0) !== 0;
      hasCall ||= isCaptured;
      return isCaptured;
    },
  };
}
