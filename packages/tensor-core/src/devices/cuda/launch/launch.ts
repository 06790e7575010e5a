import type { CudaKernel, KernelSpec } from '../../../op/cuda-lowering.ts';
import { DeviceError } from '../../../errors.ts';
import type { CudaDriver } from '../driver/driver.ts';
import { HostMemory } from '../../../native/host-memory.ts';
import type { CudaStream } from '../driver/stream.ts';

// Kernels take up to 4 KiB of parameters; alignment may stretch them.
const argumentBytes = 8192;

// CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, from cuda.h.
const programmaticSerialization = 6;

// Bytes in CUlaunchConfig.
const configStream = 32;
const configAttributes = 40;
const configAttributeCount = 48;

const sizeOffset = 40;

/**
 * Queues kernels on a stream. Arguments lie in one block of host memory that the driver reads during the call,
 * so that a launch allocates nothing.
 */
export class Launcher {
  /** Write the arguments of the next launch here. */
  readonly arguments = new HostMemory(argumentBytes);
  /** For `launchByPointers`: where each argument lies. */
  readonly pointers = new HostMemory(1024);
  readonly #driver: CudaDriver;
  readonly #stream: number;
  readonly #extra = new HostMemory(64);
  readonly #config = new HostMemory(64);
  readonly #attributes = new HostMemory(128);

  constructor(driver: CudaDriver, stream: CudaStream) {
    this.#driver = driver;
    this.#stream = stream.handle;
    // { CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END }
    this.#extra.writeInt64(0, 1);
    this.#extra.writeInt64(8, this.arguments.address);
    this.#extra.writeInt64(16, 2);
    this.#extra.writeInt64(24, this.#extra.address + sizeOffset);
    this.#extra.writeInt64(32, 0);
    this.#config.writeInt64(configStream, stream.handle);
    this.#config.writeInt64(configAttributes, this.#attributes.address);
    this.#config.words[configAttributeCount / 4] = 1;
    this.#attributes.words[0] = programmaticSerialization;
    this.#attributes.words[2] = 1;
  }

  /**
   * Launches `kernel` (a CUfunction) with the first `byteLength` bytes of `arguments`, packed by C's rules of
   * alignment. Alignments above 16 do not follow those rules: see `launchByPointers`.
   */
  launch(kernel: number, gridX: number, blockSize: number, byteLength: number): void {
    this.#extra.words[sizeOffset / 4] = byteLength;
    const { cuLaunchKernel } = this.#driver.functions;
    const extra = this.#extra.address;
    const result = cuLaunchKernel(kernel, gridX, 1, 1, blockSize, 1, 1, 0, this.#stream, 0, extra);
    if (result !== 0) this.#driver.check(result, 'cuLaunchKernel');
  }

  /** Launches `kernel` with arguments at the addresses that `pointers` holds, one for each parameter. */
  launchByPointers(
    kernel: number,
    grid: readonly [number, number, number],
    blockSize: number,
    sharedBytes: number,
    overlapsPrevious: boolean,
  ): void {
    const { cuLaunchKernel, cuLaunchKernelEx } = this.#driver.functions;
    const parameters = this.pointers.address;
    let result: number;
    if (overlapsPrevious) {
      this.#config.words.set([...grid, blockSize, 1, 1, sharedBytes]);
      result = cuLaunchKernelEx(this.#config.address, kernel, parameters, 0);
    } else {
      const [x, y, z] = grid;
      result = cuLaunchKernel(kernel, x, y, z, blockSize, 1, 1, sharedBytes, this.#stream, parameters, 0);
    }
    if (result !== 0) this.#driver.check(result, 'cuLaunchKernel');
  }
}

const slotBytes = 8;
const structureAlignment = 64;
const letters = 'piulfdT';
const [letterP, letterI, letterU, letterL, letterF, letterD] = Array.from(letters, (letter) =>
  letter.charCodeAt(0),
);

/** A kernel of a `.cu` file with arguments by their letters; see `KernelSpec.parameters`. */
export class LoadedKernel implements CudaKernel {
  readonly name: string;
  /** The CUfunction. */
  readonly handle: number;
  readonly #launcher: Launcher;
  readonly #parameters: string;
  readonly #overlapsPrevious: boolean;

  /** Throws a DeviceError for a parameter letter without meaning. */
  constructor(
    launcher: Launcher,
    spec: Pick<KernelSpec, 'name' | 'parameters' | 'overlapsPrevious'>,
    handle: number,
  ) {
    const { name, parameters, overlapsPrevious = false } = spec;
    this.name = name;
    this.handle = handle;
    this.#launcher = launcher;
    this.#parameters = parameters;
    this.#overlapsPrevious = overlapsPrevious;
    const unknown = Array.from(parameters).find((letter) => !letters.includes(letter));
    if (unknown !== undefined) {
      throw new DeviceError(
        `Kernel ${name}: "${unknown}" in "${parameters}" is no parameter; take ${letters}.`,
      );
    }
  }

  launch(
    grid: readonly [number, number, number],
    blockSize: number,
    sharedBytes: number,
    arguments_: readonly (number | Uint8Array)[],
  ): void {
    const count = this.#parameters.length;
    if (arguments_.length !== count) {
      throw new DeviceError(
        `Kernel ${this.name} takes ${count} arguments (${this.#parameters}), got ${arguments_.length}.`,
      );
    }
    const { pointers, arguments: memory } = this.#launcher;
    let structure = Math.ceil((slotBytes * count) / structureAlignment) * structureAlignment;
    for (let i = 0; i < count; i++) {
      const value = arguments_[i]!;
      let offset = slotBytes * i;
      if (typeof value === 'number') {
        writeNumber(memory, offset, this.#parameters.charCodeAt(i), value);
      } else {
        offset = structure;
        structure += Math.ceil(value.length / structureAlignment) * structureAlignment;
        memory.bytes.set(value, offset);
      }
      pointers.writeInt64(8 * i, memory.address + offset);
    }
    this.#launcher.launchByPointers(this.handle, grid, blockSize, sharedBytes, this.#overlapsPrevious);
  }
}

function writeNumber(memory: HostMemory, offset: number, letter: number, value: number): void {
  if (letter === letterP || letter === letterL) memory.writeInt64(offset, value);
  else if (letter === letterI || letter === letterU) memory.words[offset / 4] = value;
  else if (letter === letterF) memory.floats[offset / 4] = value;
  else if (letter === letterD) memory.doubles[offset / 8] = value;
  else throw new DeviceError(`A structure parameter takes its bytes, not the number ${value}.`);
}
