import type { CudaKernel, KernelResources, KernelSpec } from '../kernel.ts';
import { DeviceError } from '../base/errors.ts';
import type { CudaDriver } from '../driver/driver.ts';
import { HostMemory } from '../base/host/host-memory.ts';
import type { CurrentStream } from '../driver/stream.ts';
import { argumentError, checkGrid, checkSharedBytes, maxDynamicSharedBytes } from './launch-limits.ts';

// Kernels take up to 4 KiB of parameters; alignment may stretch them.
const argumentBytes = 8192;
const pointerBytes = 1024;

// CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, from cuda.h.
const programmaticSerialization = 6;

// Bytes in CUlaunchConfig.
const configStream = 32;
const configAttributes = 40;
const configAttributeCount = 48;

const sizeOffset = 40;

/** A launch as the driver takes it: arguments by their addresses, or packed where `extra` points. */
export interface PreparedLaunch {
  readonly kernel: number;
  readonly grid: readonly [number, number, number];
  readonly blockSize: number;
  readonly sharedBytes: number;
  readonly parameters: number;
  readonly extra: number;
}

// CU_FUNC_ATTRIBUTE_*, from cuda.h.
const attributes = { staticSharedBytes: 1, localBytesPerThread: 3, registersPerThread: 4 } as const;

/** What sees launches while it records. */
export interface LaunchRecorder {
  /** Takes launches in the stream's place: a graph gives its nodes new arguments by them. */
  redirect?(launch: PreparedLaunch): void;
  /** Called after each launch on the stream. */
  launched?(): void;
}

/**
 * Queues kernels on the current stream. Arguments lie in one block of host memory that the driver reads during the
 * call, so that a launch allocates nothing.
 */
export class Launcher {
  /** Write the arguments of the next launch here. */
  readonly arguments = new HostMemory(argumentBytes);
  /** For `launchByPointers`: where each argument lies. */
  readonly pointers = new HostMemory(pointerBytes);
  readonly #driver: CudaDriver;
  readonly #streams: CurrentStream;
  readonly #makeCurrent: () => void;
  readonly #extra = new HostMemory(64);
  readonly #config = new HostMemory(64);
  readonly #attributes = new HostMemory(128);
  #recorder: LaunchRecorder | null = null;

  /** `makeCurrent` directs this thread's driver calls to the GPU. */
  constructor(driver: CudaDriver, streams: CurrentStream, makeCurrent: () => void) {
    this.#driver = driver;
    this.#streams = streams;
    this.#makeCurrent = makeCurrent;
    // { CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END }
    this.#extra.writeInt64(0, 1);
    this.#extra.writeInt64(8, this.arguments.address);
    this.#extra.writeInt64(16, 2);
    this.#extra.writeInt64(24, this.#extra.address + sizeOffset);
    this.#extra.writeInt64(32, 0);
    this.#config.writeInt64(configAttributes, this.#attributes.address);
    this.#config.words[configAttributeCount / 4] = 1;
    this.#attributes.words[0] = programmaticSerialization;
    this.#attributes.words[2] = 1;
  }

  /** What `kernel` (a CUfunction) takes of a multiprocessor. */
  resourcesOf(kernel: number): KernelResources {
    this.#makeCurrent();
    const { cuFuncGetAttribute } = this.#driver.functions;
    const read = (attribute: number) =>
      this.#driver.intFrom('cuFuncGetAttribute', (out) => cuFuncGetAttribute(out, attribute, kernel));
    return {
      registersPerThread: read(attributes.registersPerThread),
      localBytesPerThread: read(attributes.localBytesPerThread),
      staticSharedBytes: read(attributes.staticSharedBytes),
    };
  }

  /** Runs `fn`, whose launches `recorder` sees. */
  record<T>(recorder: LaunchRecorder, fn: () => T): T {
    const outer = this.#recorder;
    this.#recorder = recorder;
    try {
      return fn();
    } finally {
      this.#recorder = outer;
    }
  }

  /**
   * Launches `kernel` (a CUfunction) with the first `byteLength` bytes of `arguments`, packed by C's rules of
   * alignment. Alignments above 16 do not follow those rules: see `launchByPointers`. Throws a DeviceError for a grid
   * or block that no GPU takes.
   */
  launch(kernel: number, gridX: number, blockSize: number, byteLength: number): void {
    checkGrid('a generated kernel', gridX, 1, 1, blockSize);
    this.#extra.words[sizeOffset / 4] = byteLength;
    const extra = this.#extra.address;
    const recorder = this.#recorder;
    if (recorder?.redirect)
      return recorder.redirect({
        kernel,
        grid: [gridX, 1, 1],
        blockSize,
        sharedBytes: 0,
        parameters: 0,
        extra,
      });
    this.#makeCurrent();
    const { cuLaunchKernel } = this.#driver.functions;
    const stream = this.#streams.current.handle;
    const result = cuLaunchKernel(kernel, gridX, 1, 1, blockSize, 1, 1, 0, stream, 0, extra);
    if (result !== 0) this.#driver.check(result, 'cuLaunchKernel');
    recorder?.launched?.();
  }

  /** Launches `kernel` with arguments at the addresses that `pointers` holds, one for each parameter. */
  launchByPointers(
    kernel: number,
    grid: readonly [number, number, number],
    blockSize: number,
    sharedBytes: number,
    overlapsPrevious: boolean,
  ): void {
    const parameters = this.pointers.address;
    const recorder = this.#recorder;
    if (recorder?.redirect)
      return recorder.redirect({ kernel, grid, blockSize, sharedBytes, parameters, extra: 0 });
    this.#makeCurrent();
    const { cuLaunchKernel, cuLaunchKernelEx } = this.#driver.functions;
    const stream = this.#streams.current.handle;
    const [x, y, z] = grid;
    let result: number;
    if (overlapsPrevious) {
      this.#config.words.set([x, y, z, blockSize, 1, 1, sharedBytes]);
      this.#config.writeInt64(configStream, stream);
      result = cuLaunchKernelEx(this.#config.address, kernel, parameters, 0);
    } else {
      result = cuLaunchKernel(kernel, x, y, z, blockSize, 1, 1, sharedBytes, stream, parameters, 0);
    }
    if (result !== 0) this.#driver.check(result, 'cuLaunchKernel');
    recorder?.launched?.();
  }
}

const slotBytes = 8;
const structureAlignment = 64;
const mostParameters = pointerBytes / slotBytes;
const letters = 'piulfdT';
const [letterP, letterI, letterU, letterL, letterF] = Array.from(letters, (letter) => letter.charCodeAt(0));
const letterT = 'T'.charCodeAt(0);

/** A kernel of a `.cu` file with arguments by their letters; see `KernelSpec.parameters`. */
export class LoadedKernel implements CudaKernel {
  readonly name: string;
  /** The CUfunction. */
  readonly handle: number;
  readonly #launcher: Launcher;
  readonly #parameters: string;
  readonly #codes: Uint8Array;
  readonly #overlapsPrevious: boolean;
  readonly #maxSharedBytes: number;

  /** Throws a DeviceError for a parameter letter without meaning, or more parameters than there is room for. */
  constructor(
    launcher: Launcher,
    spec: Pick<KernelSpec, 'name' | 'parameters' | 'overlapsPrevious' | 'dynamicSharedBytes'>,
    handle: number,
  ) {
    const { name, parameters, overlapsPrevious = false, dynamicSharedBytes = 0 } = spec;
    this.name = name;
    this.handle = handle;
    this.#launcher = launcher;
    this.#parameters = parameters;
    this.#codes = Uint8Array.from(parameters, (letter) => letter.charCodeAt(0));
    this.#overlapsPrevious = overlapsPrevious;
    this.#maxSharedBytes = maxDynamicSharedBytes(dynamicSharedBytes);
    const unknown = Array.from(parameters).find((letter) => !letters.includes(letter));
    if (unknown !== undefined) {
      throw new DeviceError(
        `Kernel ${name}: "${unknown}" in "${parameters}" is no parameter; take ${letters}.`,
      );
    }
    if (parameters.length > mostParameters) {
      throw new DeviceError(
        `Kernel ${name}: ${parameters.length} parameters are more than ${mostParameters}; pass a structure.`,
      );
    }
  }

  resources(): KernelResources {
    return this.#launcher.resourcesOf(this.handle);
  }

  /** Throws a DeviceError that names the argument which its parameter cannot hold, or a size that no GPU takes. */
  launch(
    grid: readonly [number, number, number],
    blockSize: number,
    sharedBytes: number,
    arguments_: readonly (number | Uint8Array)[],
  ): void {
    const codes = this.#codes;
    const count = codes.length;
    if (arguments_.length !== count) {
      throw new DeviceError(
        `Kernel ${this.name} takes ${count} arguments (${this.#parameters}), got ${arguments_.length}.`,
      );
    }
    checkGrid(this.name, grid[0], grid[1], grid[2], blockSize);
    checkSharedBytes(this.name, sharedBytes, this.#maxSharedBytes);
    const { pointers, arguments: memory } = this.#launcher;
    let structure = Math.ceil((slotBytes * count) / structureAlignment) * structureAlignment;
    for (let i = 0; i < count; i++) {
      const value = arguments_[i]!;
      let offset = slotBytes * i;
      if (typeof value === 'number') {
        this.#writeNumber(memory, offset, i, value);
      } else {
        offset = structure;
        structure = this.#writeStructure(memory, offset, i, value);
      }
      pointers.writeInt64(8 * i, memory.address + offset);
    }
    this.#launcher.launchByPointers(this.handle, grid, blockSize, sharedBytes, this.#overlapsPrevious);
  }

  #writeNumber(memory: HostMemory, offset: number, index: number, value: number): void {
    const letter = this.#codes[index];
    if (letter === letterP || letter === letterL) {
      if (!Number.isSafeInteger(value) || (letter === letterP && value < 0)) this.#refuse(index, value);
      memory.writeInt64(offset, value);
    } else if (letter === letterI) {
      if (value !== (value | 0)) this.#refuse(index, value);
      memory.words[offset / 4] = value;
    } else if (letter === letterU) {
      if (value !== value >>> 0) this.#refuse(index, value);
      memory.words[offset / 4] = value;
    } else if (letter === letterF) {
      memory.floats[offset / 4] = value;
    } else if (letter === letterT) {
      this.#refuse(index, value);
    } else {
      memory.doubles[offset / 8] = value;
    }
  }

  /** Returns where the next structure may begin. */
  #writeStructure(memory: HostMemory, offset: number, index: number, value: Uint8Array): number {
    if (this.#codes[index] !== letterT || !(value instanceof Uint8Array)) this.#refuse(index, value);
    const end = offset + Math.ceil(value.length / structureAlignment) * structureAlignment;
    if (end > argumentBytes) {
      throw new DeviceError(
        `Kernel ${this.name}: parameter ${index} is a structure of ${value.length} bytes; with those before it that is ` +
          `more than the ${argumentBytes} that parameters may take.`,
      );
    }
    memory.bytes.set(value, offset);
    return end;
  }

  #refuse(index: number, value: unknown): never {
    throw argumentError(this.name, this.#parameters, index, value);
  }
}
