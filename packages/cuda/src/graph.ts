import { ffi } from './base/host/ffi.ts';
import { HostMemory } from './base/host/host-memory.ts';
import type { CudaDriver } from './driver/driver.ts';
import type { CudaStream } from './driver/stream.ts';
import type { PreparedLaunch } from './launch/launch.ts';

// CU_STREAM_CAPTURE_MODE_RELAXED: memory may be reserved and modules loaded meanwhile.
const relaxed = 2;

/** CUgraphNodeType of cuda.h: kernels are 0, copies 1 and fills 2; the others do nothing that a profiler records. */
const lastActivityType = 2;

// CUDA_KERNEL_NODE_PARAMS of cuda.h, in bytes.
const nodeParameterBytes = 72;
const gridOffset = 8;
const argumentsOffset = 40;
const extraOffset = 48;

/** A CUDA graph that was captured from a stream, ready to be launched as a whole. */
export class CudaGraph {
  readonly #driver: CudaDriver;
  readonly #graph: number;
  readonly #executable: number;
  readonly #parameters = new HostMemory(nodeParameterBytes);
  #isDisposed = false;

  private constructor(driver: CudaDriver, graph: number) {
    this.#driver = driver;
    this.#graph = graph;
    try {
      this.#executable = driver.handleFrom('cuGraphInstantiate', (out) =>
        driver.functions.cuGraphInstantiate(out, graph, 0),
      );
    } catch (error) {
      driver.functions.cuGraphDestroy(graph);
      throw error;
    }
  }

  /** Captures what `queue` gives the stream; none of it runs. Throws what `queue` throws. */
  static capture(driver: CudaDriver, stream: CudaStream, queue: () => void): CudaGraph {
    const { functions } = driver;
    driver.check(functions.cuStreamBeginCapture(stream.handle, relaxed), 'cuStreamBeginCapture');
    let isQueued = false;
    try {
      queue();
      isQueued = true;
    } finally {
      // A stream that stays in capture is lost to everybody.
      if (!isQueued) discardCapture(driver, stream);
    }
    const graph = driver.handleFrom('cuStreamEndCapture', (out) =>
      functions.cuStreamEndCapture(stream.handle, out),
    );
    return new CudaGraph(driver, graph);
  }

  /** The node of what was queued last on a stream that is being captured. */
  static lastNode(driver: CudaDriver, stream: CudaStream): number {
    askCapture(driver, stream);
    // The nodes lie in the driver's memory; a stream alone has one.
    return Number(ffi().decode(BigInt(driver.result.readUint64(24)), 'uint64_t'));
  }

  /** The nodes that there are for what a stream has been given since its capture began. */
  static capturedNodes(driver: CudaDriver, stream: CudaStream): number {
    askCapture(driver, stream);
    return countNodes(driver, driver.result.readUint64(16));
  }

  /** Gives a kernel's node other arguments, for the launches to come. */
  setLaunch(node: number, { kernel, grid, blockSize, sharedBytes, parameters, extra }: PreparedLaunch): void {
    const memory = this.#parameters;
    memory.writeInt64(0, kernel);
    memory.words.set([...grid, blockSize, 1, 1, sharedBytes], gridOffset / 4);
    memory.writeInt64(argumentsOffset, parameters);
    memory.writeInt64(extraOffset, extra);
    const { cuGraphExecKernelNodeSetParams } = this.#driver.functions;
    this.#driver.check(
      cuGraphExecKernelNodeSetParams(this.#executable, node, memory.address),
      'cuGraphExecKernelNodeSetParams',
    );
  }

  /** The kernels, copies and fills. */
  nodeCount(): number {
    return this.areActivities().filter(Boolean).length;
  }

  /**
   * Of each node, in the order of the capture, whether it is a kernel, a copy or a fill. Libraries add others: NCCL a node for
   * each of its calls.
   */
  areActivities(): boolean[] {
    const { functions, result } = this.#driver;
    const count = countNodes(this.#driver, this.#graph);
    if (count === 0) return [];
    const memory = new HostMemory(8 * count);
    result.writeInt64(0, count);
    this.#driver.check(
      functions.cuGraphGetNodes(this.#graph, memory.address, result.address),
      'cuGraphGetNodes',
    );
    return Array.from({ length: count }, (_, i) => {
      const node = memory.readUint64(8 * i);
      const type = this.#driver.intFrom('cuGraphNodeGetType', (out) =>
        functions.cuGraphNodeGetType(node, out),
      );
      return type <= lastActivityType;
    });
  }

  launch(stream: CudaStream): void {
    this.#driver.check(
      this.#driver.functions.cuGraphLaunch(this.#executable, stream.handle),
      'cuGraphLaunch',
    );
  }

  get isDisposed(): boolean {
    return this.#isDisposed;
  }

  /** Frees it; launches under way end as they would. Twice is as once. */
  dispose(): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    this.#driver.functions.cuGraphExecDestroy(this.#executable);
    this.#driver.functions.cuGraphDestroy(this.#graph);
  }
}

/** Without a check: what threw says more. */
function discardCapture({ functions, result }: CudaDriver, stream: CudaStream): void {
  const status = functions.cuStreamEndCapture(stream.handle, result.address);
  if (status === 0) functions.cuGraphDestroy(result.readUint64(0));
}

/** Writes into the driver's results, 8 bytes each: status, id, graph, the address of the last nodes, edges, their number. */
function askCapture(driver: CudaDriver, stream: CudaStream): void {
  const [status, id, graph, nodes, edges, count] = Array.from(
    { length: 6 },
    (_, i) => driver.result.address + 8 * i,
  );
  const { cuStreamGetCaptureInfo } = driver.functions;
  driver.check(
    cuStreamGetCaptureInfo(stream.handle, status!, id!, graph!, nodes!, edges!, count!),
    'cuStreamGetCaptureInfo',
  );
}

function countNodes(driver: CudaDriver, graph: number): number {
  return driver.handleFrom('cuGraphGetNodes', (out) => driver.functions.cuGraphGetNodes(graph, 0, out));
}
