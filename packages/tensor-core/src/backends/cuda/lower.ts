import type { MemoryView } from '../../base/memory-view.ts';
import type { StridedMemory } from '../../base/memory-view.ts';
import type { CudaContext, MatmulRequest } from '../../op/cuda-lowering.ts';
import type { Block, CublasLt, KernelModules, LaunchRecorder, Launcher, Streams } from '@roofline/cuda/parts';
import type { CudaKernel, CudaProperties, KernelSpec } from '@roofline/cuda';
import { ShapeError } from '../../base/errors.ts';
import type { ComputeOp } from '../../op/op.ts';
import { contiguousStrides, formatShape } from '../../base/shape.ts';
import type { DeviceBuffer } from '@roofline/cuda/host';
import { type TimedDevice, fastestAlgorithm } from './matmul/fastest-algorithm.ts';
import { type Float32Product, Matmul } from './matmul/matmul.ts';
import { PointwiseRunner } from './generated/pointwise.ts';
import { ReductionRunner } from './generated/reduction.ts';

/** The memory of a device, for what an op needs besides its inputs and outputs. */
export interface BlockMemory {
  allocateBlock(byteLength: number): Block;
  freeBlock(block: Block): void;
}

/** Sees the ops of a CUDA graph, as they are captured and as their arguments change. */
export interface CallRecorder extends LaunchRecorder {
  /** Memory for the next workspace, which is not freed; null to allocate it. */
  workspaceFor(byteLength: number): DeviceBuffer | null;
  /** As `CudaContext.multiprocessors`; all if not said. */
  readonly multiprocessors?: number;
  /** How many calls with ordered effects leave to a call that runs beside them, for which products are then chosen; all if not said. */
  readonly multiprocessorsLeft?: number;
  /** Called with each workspace. */
  tookWorkspace?(workspace: DeviceBuffer): void;
}

/** What lowering is built on. */
export interface LoweringParts {
  readonly device: TimedDevice;
  readonly streams: Streams;
  readonly launcher: Launcher;
  readonly modules: KernelModules;
  readonly properties: CudaProperties;
  readonly memory: BlockMemory;
  /** Called with the context that the product will use. */
  readonly makeFloat32Product: (context: CudaContext) => Float32Product | null;
  readonly loadCublasLt: () => CublasLt;
}

/** Turns ops into kernel launches on the current stream. Custom ops see it as their CudaContext. */
export class CudaLowering implements CudaContext {
  readonly device: TimedDevice;
  readonly properties: CudaProperties;
  /** Matrix products, whose algorithms can be tuned. */
  readonly products: Matmul;
  readonly matmul: (request: MatmulRequest) => void;
  readonly #streams: Streams;
  readonly #modules: KernelModules;
  readonly #memory: BlockMemory;
  readonly #pointwise: PointwiseRunner;
  readonly #reduction: ReductionRunner;
  /** Blocks to give back when the current op has been queued. */
  readonly #workspaces: Block[] = [];
  readonly #launcher: Launcher;
  #recorder: CallRecorder | null = null;

  constructor(parts: LoweringParts) {
    const { device, streams, launcher, modules, properties, memory } = parts;
    this.device = device;
    this.properties = properties;
    this.#launcher = launcher;
    this.#streams = streams;
    this.#modules = modules;
    this.#memory = memory;
    const generate = (name: string, source: string) => modules.generated(name, source);
    const workspace = (byteLength: number) => this.workspace(byteLength);
    this.#pointwise = new PointwiseRunner(launcher, generate);
    const { multiprocessors } = properties;
    this.#reduction = new ReductionRunner(launcher, generate, this.#pointwise, workspace, multiprocessors);
    this.products = new Matmul(
      streams,
      workspace,
      (address, byteLength) => this.fillBytes(address, 0, byteLength),
      parts.makeFloat32Product(this),
      parts.loadCublasLt,
      (library, description) => fastestAlgorithm(device, library, description),
      () => this.#recorder?.multiprocessorsLeft,
    );
    this.matmul = this.products.run;
  }

  /** Runs `fn`, while `recorder` sees the launches and workspaces of its ops. */
  record<T>(recorder: CallRecorder, fn: () => T): T {
    const outer = this.#recorder;
    this.#recorder = recorder;
    try {
      return this.#launcher.record(recorder, fn);
    } finally {
      this.#recorder = outer;
    }
  }

  /** Queues `op`. Outputs are allocated; see `Device.run`. */
  run<A>(
    op: ComputeOp<A>,
    inputs: readonly MemoryView[],
    outputs: readonly MemoryView[],
    attributes: A,
  ): void {
    const lowering = op.cuda;
    if (lowering.kind === 'pointwise') {
      this.#pointwise.run(op, inputs, outputs, attributes);
      return;
    }
    try {
      if (lowering.kind === 'reduction') this.#reduction.run(op, inputs, outputs[0]!, attributes);
      else if (lowering.strided) lowering.launch(this, inputs, outputs, attributes);
      else lowering.launch(this, this.#contiguous(op, inputs), outputs, attributes);
    } finally {
      this.#freeWorkspaces();
    }
  }

  get multiprocessors(): number {
    const { multiprocessors, multiprocessorsLeft } = this.#recorder ?? {};
    return multiprocessors ?? multiprocessorsLeft ?? this.properties.multiprocessors;
  }

  get isCaptured(): boolean {
    return this.#recorder !== null;
  }

  kernel(spec: KernelSpec): CudaKernel {
    return this.#modules.kernel(spec);
  }

  workspace(byteLength: number): number {
    return this.#workspaceBlock(byteLength).address;
  }

  #workspaceBlock(byteLength: number): DeviceBuffer {
    const given = this.#recorder?.workspaceFor(byteLength) ?? null;
    const workspace = given ?? this.#allocateWorkspace(byteLength);
    this.#recorder?.tookWorkspace?.(workspace);
    return workspace;
  }

  #allocateWorkspace(byteLength: number): Block {
    const block = this.#memory.allocateBlock(byteLength);
    this.#workspaces.push(block);
    return block;
  }

  fillBytes(pointer: number, value: number, byteLength: number): void {
    this.#streams.current.fill(pointer, value, byteLength);
  }

  copy(from: StridedMemory, to: StridedMemory): void {
    this.#pointwise.copy(from, to);
  }

  /**
   * The inputs, with copies of those that are not contiguous. An input that the op mutates must be contiguous: it cannot be a
   * copy.
   */
  #contiguous<A>(op: ComputeOp<A>, inputs: readonly MemoryView[]): readonly MemoryView[] {
    if (areContiguous(inputs)) return inputs;
    return inputs.map((input, i) => {
      if (input.isContiguous) return input;
      if (op.mutates?.includes(i)) throw notContiguous(op.name, i, input);
      const copy = this.#contiguousWorkspace(input);
      this.#pointwise.copy(input, copy);
      return copy;
    });
  }

  /** Memory for a contiguous tensor of the same shape and dtype, freed with the other workspaces. */
  #contiguousWorkspace({ dtype, shape, size, byteLength }: MemoryView): MemoryView {
    const block = this.#workspaceBlock(byteLength);
    return {
      ...{ dtype, shape, size, byteLength, isContiguous: true },
      strides: contiguousStrides(shape),
      offset: 0,
      address: block.address,
      storage: { byteLength, buffer: block },
    };
  }

  #freeWorkspaces(): void {
    for (let block = this.#workspaces.pop(); block; block = this.#workspaces.pop())
      this.#memory.freeBlock(block);
  }
}

function areContiguous(inputs: readonly MemoryView[]): boolean {
  for (let i = 0; i < inputs.length; i++) if (!inputs[i]!.isContiguous) return false;
  return true;
}

function notContiguous(op: string, index: number, input: MemoryView): ShapeError {
  return new ShapeError(
    `${op}: input ${index} ${formatShape(input.shape)} is written in place, so it must be contiguous, but its ` +
      `strides are ${formatShape(input.strides)}; call contiguous() first.`,
  );
}
