import { DeviceError } from '../errors.ts';
import type { CudaKernel } from './context.ts';
import type { CudaDriver } from './driver.ts';
import { HostMemory } from './host-memory.ts';
import type { CudaStream } from './stream.ts';

/** The most bytes that a kernel's parameters may take. */
export const maxArgumentBytes = 4096;

/**
 * Queues kernels on a stream. Arguments are packed into one block of host memory that the driver reads during
 * the call (CU_LAUNCH_PARAM_BUFFER_POINTER), so that a launch allocates nothing.
 */
export class Launcher {
  /** Write the arguments of the next launch here, each aligned to its size. */
  readonly arguments = new HostMemory(maxArgumentBytes);
  readonly #driver: CudaDriver;
  readonly #launch: CudaDriver['functions']['cuLaunchKernel'];
  readonly #stream: number;
  readonly #extra = new HostMemory(64);
  readonly #extraAddress: number;

  constructor(driver: CudaDriver, stream: CudaStream) {
    this.#driver = driver;
    this.#launch = driver.functions.cuLaunchKernel;
    this.#stream = stream.handle;
    this.#extraAddress = this.#extra.address;
    // { CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END }
    this.#extra.writeInt64(0, 1);
    this.#extra.writeInt64(8, this.arguments.address);
    this.#extra.writeInt64(16, 2);
    this.#extra.writeInt64(24, this.#extra.address + sizeOffset);
    this.#extra.writeInt64(32, 0);
  }

  /** Launches `function_` (a CUfunction) with the first `argumentBytes` bytes of `arguments`. */
  launch(
    function_: number,
    gridX: number,
    gridY: number,
    gridZ: number,
    blockSize: number,
    sharedBytes: number,
    argumentBytes: number,
  ): void {
    this.#extra.words[sizeOffset / 4] = argumentBytes;
    const result = this.#launch(
      function_,
      gridX,
      gridY,
      gridZ,
      blockSize,
      1,
      1,
      sharedBytes,
      this.#stream,
      0,
      this.#extraAddress,
    );
    if (result !== 0) this.#driver.check(result, 'cuLaunchKernel');
  }
}

const sizeOffset = 40;

/** A kernel of a `.cu` file with arguments by their letters; see `KernelSpec.parameters`. */
export class LoadedKernel implements CudaKernel {
  readonly name: string;
  /** The CUfunction. */
  readonly handle: number;
  readonly #launcher: Launcher;
  readonly #parameters: string;
  readonly #offsets: readonly number[];
  readonly #argumentBytes: number;

  constructor(launcher: Launcher, name: string, handle: number, parameters: string) {
    this.name = name;
    this.handle = handle;
    this.#launcher = launcher;
    this.#parameters = parameters;
    const { offsets, byteLength } = packParameters(name, parameters);
    this.#offsets = offsets;
    this.#argumentBytes = byteLength;
  }

  launch(
    grid: readonly [number, number, number],
    blockSize: number,
    sharedBytes: number,
    arguments_: readonly (number | Uint8Array)[],
  ): void {
    const parameters = this.#parameters;
    if (arguments_.length !== parameters.length) {
      throw new DeviceError(
        `Kernel ${this.name} takes ${parameters.length} arguments (${parameters}), got ${arguments_.length}.`,
      );
    }
    const memory = this.#launcher.arguments;
    for (let i = 0; i < parameters.length; i++) {
      writeArgument(memory, this.#offsets[i]!, parameters.charCodeAt(i), arguments_[i]!);
    }
    this.#launcher.launch(this.handle, grid[0], grid[1], grid[2], blockSize, sharedBytes, this.#argumentBytes);
  }
}

const parameterBytes: Readonly<Record<string, number>> = { p: 8, i: 4, u: 4, l: 8, f: 4, d: 8, T: 128 };
const tensorMapAlignment = 64;

/** Where each argument lies by C's rules of alignment. Throws a DeviceError for a letter without meaning. */
export function packParameters(name: string, parameters: string): { offsets: number[]; byteLength: number } {
  let byteLength = 0;
  const offsets = Array.from(parameters, (letter) => {
    const bytes = parameterBytes[letter];
    if (bytes === undefined) {
      throw new DeviceError(`Kernel ${name}: "${letter}" in "${parameters}" is no parameter type; take one of p i u l f d T.`);
    }
    const alignment = Math.min(bytes, tensorMapAlignment);
    const offset = Math.ceil(byteLength / alignment) * alignment;
    byteLength = offset + bytes;
    return offset;
  });
  if (byteLength > maxArgumentBytes) {
    throw new DeviceError(`Kernel ${name}: its parameters take ${byteLength} bytes, more than ${maxArgumentBytes}.`);
  }
  return { offsets, byteLength };
}

const [letterP, letterL, letterF, letterD, letterT] = Array.from('plfdT', (letter) => letter.charCodeAt(0));

function writeArgument(memory: HostMemory, offset: number, letter: number, value: number | Uint8Array): void {
  if (letter === letterT) memory.bytes.set(value as Uint8Array, offset);
  else if (letter === letterP || letter === letterL) memory.writeInt64(offset, value as number);
  else if (letter === letterF) memory.floats[offset / 4] = value as number;
  else if (letter === letterD) memory.doubles[offset / 8] = value as number;
  else memory.words[offset / 4] = value as number;
}
