import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import koffi from 'koffi';
import { type DriverFunctions, notReady, outOfMemory } from '../devices/cuda/driver/driver.ts';
import { HostMemory } from '../native/host-memory.ts';
import { EmulatedQueues } from './emulated-queues.ts';

/** What an emulated GPU claims to be. */
export const emulatedMultiprocessors = 2;

const attributes: Record<number, number> = {
  13: 1_000_000,
  16: emulatedMultiprocessors,
  36: 1_000_000,
  37: 64,
  38: 2 ** 20,
  39: 2048,
  75: 8,
  76: 0,
  81: 101_376,
  97: 101_376,
};

// CUDA_ERROR_..., as far as an emulated GPU can fail.
const invalidHandle = 400;
const notSupported = 801;
// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
const captureUnsupported = 900;
const results: Readonly<Record<number, string>> = {
  [outOfMemory]: 'out of memory',
  [invalidHandle]: 'invalid handle',
  700: 'illegal address',
  [captureUnsupported]: 'not permitted while a stream is captured',
  716: 'misaligned address',
  719: 'threads of a block wait at different barriers',
  [notSupported]: 'not supported by the emulated GPU',
};

/** What new memory holds: NaN in every floating-point dtype. */
const poison = 0xff;

interface EmulatedKernel {
  readonly name: string;
  /** Copies the arguments of a launch; gives their address. */
  readonly copy: (captured: number) => number;
  readonly capture: (packed: number, pointers: number) => number;
  /** Runs it on captured arguments, which it frees; gives a CUresult. */
  readonly run: (
    arguments_: number,
    gridX: number,
    gridY: number,
    gridZ: number,
    threads: number,
    sharedBytes: number,
    seed: number,
  ) => number;
}

const invalidValue = 1;

/** A node of a graph: a launch whose arguments may be replaced, or any other work. */
interface GraphNode {
  run: () => void;
}

/** A stand-in for libcuda: device memory is the host's, and work runs on the CPU when something waits for it. */
export class EmulatedDriver {
  readonly functions: DriverFunctions;
  readonly queues: EmulatedQueues;
  readonly #libc = koffi.load('libc.so.6');
  readonly #malloc = this.#libc.func('uintptr_t aligned_alloc(size_t alignment, size_t bytes)');
  readonly #free = this.#libc.func('void free(uintptr_t address)');
  readonly #memcpy = this.#libc.func('uintptr_t memcpy(uintptr_t to, uintptr_t from, size_t bytes)');
  readonly #toAddress = this.#libc.func('uintptr_t memcpy(uintptr_t to, const void *from, size_t bytes)');
  readonly #memset = this.#libc.func('uintptr_t memset(uintptr_t to, int value, size_t bytes)');
  readonly #modules: ReturnType<typeof koffi.load>[] = [];
  readonly #kernels: EmulatedKernel[] = [];
  /** Bytes of device and of page-locked memory by address. */
  readonly #segments = new Map<number, number>();
  readonly #pinned = new Map<number, number>();
  readonly #memoryBytes: number;
  readonly #onLaunch: (activities: number) => void;
  readonly #graphsOfNodes: GraphNode[][] = [];
  /** The graphs that streams are captured into. */
  readonly #captures = new Map<number, number>();
  readonly #nodes: GraphNode[] = [];
  readonly #nodesByWork = new Map<() => void, GraphNode>();
  /** Where a capture's last node is told. */
  readonly #lastNode = new HostMemory(8);
  #freeBytes: number;
  /** The CUresult of a kernel that failed, for every call from then on. */
  #failure = 0;
  #failedKernel = '';

  constructor(memoryBytes: number, onLaunch: (activities: number) => void, seed: number) {
    this.#memoryBytes = memoryBytes;
    this.#freeBytes = memoryBytes;
    this.#onLaunch = onLaunch;
    this.queues = new EmulatedQueues(seed);
    const table: Record<keyof DriverFunctions, (...arguments_: never[]) => number> = {
      ...this.#facts(),
      ...this.#memory(),
      ...this.#code(),
      ...this.#ordering(),
      ...this.#graphs(),
    };
    this.functions = table as unknown as DriverFunctions;
  }

  /** What a CUresult means. */
  describe(result: number): string {
    const where = result === this.#failure ? ` in kernel ${this.#failedKernel}` : '';
    return `CUresult ${result}, ${results[result] ?? 'an error'}${where}`;
  }

  #facts() {
    return {
      cuInit: () => 0,
      cuDriverGetVersion: (out: number) => this.#giveInt(out, 13_000),
      cuDeviceGetCount: (out: number) => this.#giveInt(out, 1),
      cuDeviceGet: (out: number, ordinal: number) => this.#giveInt(out, ordinal),
      cuDeviceGetName: (out: number) => this.#give(out, Buffer.from('Emulated GPU\0')),
      cuDeviceGetUuid: (out: number) => this.#give(out, Buffer.alloc(16, 7)),
      cuDeviceGetAttribute: (out: number, attribute: number) => this.#giveInt(out, attributes[attribute]!),
      cuDeviceTotalMem: (out: number) => this.#giveHandle(out, this.#memoryBytes),
      cuDevicePrimaryCtxRetain: (out: number) => this.#giveHandle(out, 1),
      cuCtxSetCurrent: () => 0,
      cuMemGetInfo: (free: number, total: number) =>
        this.#giveHandle(free, this.#freeBytes) + this.#giveHandle(total, this.#memoryBytes),
    };
  }

  #memory() {
    return {
      cuMemAlloc: (out: number, bytes: number) => this.#allocate(out, bytes),
      cuMemFree: (address: number) => this.#release(address),
      cuMemHostAlloc: (out: number, bytes: number) => {
        const address = this.#malloc(4096, Math.ceil(bytes / 4096) * 4096) as number;
        this.#pinned.set(address, bytes);
        return this.#giveHandle(out, address);
      },
      cuMemFreeHost: (address: number) => {
        if (!this.#pinned.delete(address)) return invalidValue;
        this.#free(address);
        return 0;
      },
      cuMemcpyAsync: (to: number, from: number, bytes: number, stream: number) =>
        this.#copy(to, from, bytes, stream),
      cuMemsetD8Async: (to: number, value: number, bytes: number, stream: number) =>
        this.#queue(stream, () => this.#memset(to, value, bytes)),
    };
  }

  #code() {
    return {
      cuModuleLoadData: (out: number, image: Uint8Array) => this.#loadModule(out, image),
      cuModuleGetFunction: (out: number, module: number, name: string) => this.#findKernel(out, module, name),
      cuFuncSetAttribute: () => 0,
      cuLaunchKernel: (...arguments_: number[]) => this.#launch(arguments_),
      cuLaunchKernelEx: (config: number, kernel: number, parameters: number, extra: number) => {
        const words = this.#read(config, 40);
        const sizes = Array.from({ length: 7 }, (_, i) => words.getUint32(4 * i, true));
        return this.#launch([kernel, ...sizes, Number(words.getBigUint64(32, true)), parameters, extra]);
      },
      cuTensorMapEncodeTiled: () => notSupported,
    };
  }

  #ordering() {
    const { queues } = this;
    return {
      cuStreamCreate: (out: number) => this.#giveHandle(out, queues.createStream()),
      cuStreamSynchronize: (stream: number) =>
        queues.capturedBy(stream) ? captureUnsupported : this.#after(() => queues.synchronizeStream(stream)),
      cuStreamWaitEvent: (stream: number, event: number) => this.#after(() => queues.waitFor(stream, event)),
      cuLaunchHostFunc: (stream: number, hostFunction: number, argument: number) =>
        this.#queue(stream, () => koffi.call(BigInt(hostFunction), hostFunctionType(), argument)),
      cuEventCreate: (out: number) => this.#giveHandle(out, queues.createEvent()),
      cuEventRecord: (event: number, stream: number) => this.#after(() => queues.record(event, stream)),
      cuEventQuery: (event: number) => (queues.hasCompleted(event) ? this.#failure : notReady),
      cuEventSynchronize: (event: number) => this.#after(() => queues.synchronizeEvent(event)),
      cuEventElapsedTime: (out: number, start: number, end: number) => {
        const elapsedMs = queues.elapsedMs(start, end);
        return elapsedMs === null ? notReady : this.#give(out, new Float32Array([elapsedMs]));
      },
    };
  }

  #graphs() {
    const { queues } = this;
    return {
      cuStreamBeginCapture: (stream: number) => {
        this.#captures.set(stream, this.#graphsOfNodes.push([]));
        return this.#after(() => queues.beginCapture(stream));
      },
      cuStreamEndCapture: (stream: number, out: number) => {
        const nodes = queues.endCapture(stream);
        if (!nodes) return invalidValue;
        const graph = this.#captures.get(stream)!;
        this.#captures.delete(stream);
        this.#graphsOfNodes[graph - 1] = nodes.map((run) => this.#nodeOf(run));
        return this.#giveHandle(out, graph);
      },
      cuStreamGetCaptureInfo: (
        stream: number,
        status: number,
        _id: number,
        graph: number,
        dependencies: number,
        _edges: number,
        count: number,
      ) => {
        const captured = queues.capturedBy(stream);
        const last = captured?.at(-1);
        this.#giveInt(status, captured ? 1 : 0);
        this.#giveHandle(graph, captured ? this.#captures.get(stream)! : 0);
        this.#giveHandle(count, last ? 1 : 0);
        this.#lastNode.writeInt64(0, last ? this.#handleOf(this.#nodeOf(last)) : 0);
        return this.#giveHandle(dependencies, this.#lastNode.address);
      },
      cuGraphInstantiate: (out: number, graph: number) => this.#giveHandle(out, graph),
      cuGraphLaunch: (graph: number, stream: number) => {
        // What a node is given later is for later launches.
        const runs = this.#graphsOfNodes[graph - 1]!.map(({ run }) => run);
        const result = this.#queue(stream, () => {
          for (const run of runs) run();
        });
        this.#onLaunch(runs.length);
        return result;
      },
      cuGraphExecKernelNodeSetParams: (_graph: number, node: number, parameters: number) =>
        this.#replaceLaunch(this.#nodes[node - 1]!, parameters),
      cuGraphGetNodes: (graph: number, _nodes: number, count: number) =>
        this.#giveHandle(count, this.#nodesOf(graph)),
      cuGraphDestroy: () => 0,
      cuGraphExecDestroy: () => 0,
    };
  }

  /** How many a graph has, also while a stream is captured into it. */
  #nodesOf(graph: number): number {
    for (const [stream, own] of this.#captures)
      if (own === graph) return this.queues.capturedBy(stream)!.length;
    return this.#graphsOfNodes[graph - 1]!.length;
  }

  #nodeOf(run: () => void): GraphNode {
    let node = this.#nodesByWork.get(run);
    if (!node) this.#nodesByWork.set(run, (node = { run }));
    return node;
  }

  #handleOf(node: GraphNode): number {
    const known = this.#nodes.indexOf(node);
    return known < 0 ? this.#nodes.push(node) : known + 1;
  }

  /** CUDA_KERNEL_NODE_PARAMS: the kernel, its sizes, its arguments by pointers or packed. */
  #replaceLaunch(node: GraphNode, parameters: number): number {
    const words = this.#read(parameters, 56);
    const sizes = Array.from({ length: 7 }, (_, i) => words.getUint32(8 + 4 * i, true));
    const at = (offset: number) => Number(words.getBigUint64(offset, true));
    const work = this.#launchWork([at(0), ...sizes, 0, at(40), at(48)], true);
    if (!work) return invalidHandle;
    node.run = work;
    return 0;
  }

  /** What comes of a call that waits or orders: the failure of a kernel that has run, if one has. */
  #after(action: () => void): number {
    action();
    return this.#failure;
  }

  #queue(stream: number, run: () => void): number {
    return this.#after(() => this.queues.push(stream, run));
  }

  // The driver reads pageable memory before the call returns, and writes it before it does.
  #copy(to: number, from: number, bytes: number, stream: number): number {
    if (!this.#isQueuedMemory(from)) {
      const held = this.#malloc(64, Math.ceil(bytes / 64) * 64) as number;
      this.#memcpy(held, from, bytes);
      return this.#queue(stream, () => {
        this.#memcpy(to, held, bytes);
        this.#free(held);
      });
    }
    const result = this.#queue(stream, () => this.#memcpy(to, from, bytes));
    if (!this.#isQueuedMemory(to)) this.queues.synchronizeStream(stream);
    return result;
  }

  #isQueuedMemory(address: number): boolean {
    for (const ranges of [this.#segments, this.#pinned])
      for (const [start, bytes] of ranges) if (start <= address && address < start + bytes) return true;
    return false;
  }

  #allocate(out: number, bytes: number): number {
    if (bytes > this.#freeBytes) return outOfMemory;
    this.#freeBytes -= bytes;
    const address = this.#malloc(2 ** 21, bytes) as number;
    this.#memset(address, poison, bytes);
    this.#segments.set(address, bytes);
    return this.#giveHandle(out, address);
  }

  #release(address: number): number {
    const bytes = this.#segments.get(address);
    if (bytes === undefined) return invalidValue;
    this.queues.synchronize();
    this.#freeBytes += bytes;
    this.#segments.delete(address);
    this.#free(address);
    return 0;
  }

  #loadModule(out: number, image: Uint8Array): number {
    const folder = mkdtempSync(join(tmpdir(), 'roofline-emulator-'));
    const path = join(folder, 'module.so');
    writeFileSync(path, image);
    const handle = this.#modules.push(koffi.load(path)) - 1;
    rmSync(folder, { recursive: true });
    return this.#giveHandle(out, handle);
  }

  #findKernel(out: number, module: number, name: string): number {
    const library = this.#modules[module]!;
    const kernel = {
      name,
      capture: library.func(`uintptr_t capture_${name}(uintptr_t packed, uintptr_t pointers)`),
      copy: library.func(`uintptr_t copy_${name}(uintptr_t captured)`),
      run: library.func(
        `int run_${name}(uintptr_t arguments, uint x, uint y, uint z, uint threads, uint sharedBytes, uint seed)`,
      ),
    };
    return this.#giveHandle(out, this.#kernels.push(kernel) - 1);
  }

  // Arguments are read during the call. `extra`, if there is one, holds the address of packed ones in its second word.
  #launch([handle, x, y, z, threads, , , sharedBytes, stream, parameters, extra]: number[]): number {
    const isRepeated = this.queues.capturedBy(stream!) !== null;
    const work = this.#launchWork(
      [handle!, x!, y!, z!, threads!, 1, 1, sharedBytes!, stream!, parameters!, extra!],
      isRepeated,
    );
    if (!work) return invalidHandle;
    const result = this.#queue(stream!, work);
    this.#onLaunch(isRepeated ? 0 : 1);
    return result;
  }

  /** What runs a launch, once or, in a graph, often; null for a kernel that is not there. */
  #launchWork(
    [handle, x, y, z, threads, , , sharedBytes, , parameters, extra]: number[],
    isRepeated: boolean,
  ): (() => void) | null {
    const kernel = this.#kernels[handle!];
    if (!kernel) return null;
    const packed = extra === 0 ? 0 : Number(this.#read(extra!, 16).getBigUint64(8, true));
    const arguments_ = kernel.capture(packed, parameters!);
    const seed = this.queues.random();
    return () => {
      if (this.#failure !== 0) return;
      // Running frees the arguments.
      const own = isRepeated ? kernel.copy(arguments_) : arguments_;
      this.#failure = kernel.run(own, x!, y!, z!, threads!, sharedBytes!, seed);
      this.#failedKernel = kernel.name;
    };
  }

  #read(address: number, byteLength: number): DataView {
    return new DataView(koffi.view(address, byteLength));
  }

  #giveInt(out: number, value: number): number {
    return this.#give(out, new Int32Array([value]));
  }

  #giveHandle(out: number, value: number): number {
    return this.#give(out, new BigUint64Array([BigInt(value)]));
  }

  #give(out: number, value: Uint8Array | Int32Array | BigUint64Array | Float32Array): number {
    this.#toAddress(out, new Uint8Array(value.buffer, value.byteOffset, value.byteLength), value.byteLength);
    return 0;
  }
}

let hostFunction: ReturnType<typeof koffi.proto> | null = null;

function hostFunctionType(): ReturnType<typeof koffi.proto> {
  hostFunction ??= koffi.proto('void RooflineHostFunction(uintptr_t argument)');
  return hostFunction;
}
