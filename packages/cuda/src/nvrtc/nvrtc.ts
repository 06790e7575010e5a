import { readdirSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DeviceError, KernelCompileError } from '../base/errors.ts';
import { type NativeFunctions, declareFunctions, ffi } from '../base/host/ffi.ts';
import { HostMemory } from '../base/host/host-memory.ts';
import { libraries, loadLibrary } from '../driver/library-search.ts';
import { UnusableLibraryError } from '../driver/unusable-library-error.ts';
import { keepExitSignals } from './exit-signals.ts';

/** CUDA C++ on its way to machine code. */
export interface CompileRequest {
  /** What errors call it. */
  readonly name: string;
  readonly source: string;
  /** Texts of the files that `source` includes, by the name in the include directive. */
  readonly headers: ReadonlyMap<string, string>;
  /** Such as `sm_90a`. */
  readonly architecture: string;
  /** Further compiler options. */
  readonly options: readonly string[];
}

/** Turns CUDA C++ into an image that cuModuleLoadData takes. */
export interface KernelCompiler {
  /** Part of the cache key: another version may give other code. */
  readonly version: string;
  /** Throws a KernelCompileError with the compiler's log, a DeviceError for an architecture that it does not know. */
  compile(request: CompileRequest): Uint8Array;
}

const prototypes = {
  nvrtcVersion: 'int nvrtcVersion(uintptr_t major, uintptr_t minor)',
  nvrtcCreateProgram:
    'int nvrtcCreateProgram(uintptr_t program, const char *source, const char *name, int headerCount, ' +
    'const char **headers, const char **includeNames)',
  nvrtcCompileProgram: 'int nvrtcCompileProgram(uintptr_t program, int optionCount, const char **options)',
  nvrtcGetCUBINSize: 'int nvrtcGetCUBINSize(uintptr_t program, uintptr_t size)',
  nvrtcGetCUBIN: 'int nvrtcGetCUBIN(uintptr_t program, void *image)',
  nvrtcGetProgramLogSize: 'int nvrtcGetProgramLogSize(uintptr_t program, uintptr_t size)',
  nvrtcGetProgramLog: 'int nvrtcGetProgramLog(uintptr_t program, void *log)',
  nvrtcDestroyProgram: 'int nvrtcDestroyProgram(uintptr_t program)',
  nvrtcGetNumSupportedArchs: 'int nvrtcGetNumSupportedArchs(uintptr_t count)',
  nvrtcGetSupportedArchs: 'int nvrtcGetSupportedArchs(uintptr_t architectures)',
} as const;

/** NVIDIA's run-time compiler. */
class Nvrtc implements KernelCompiler {
  readonly version: string;
  readonly #path: string;
  readonly #functions: NativeFunctions<typeof prototypes>;
  readonly #result = new HostMemory(256);
  readonly #describe: (result: number) => string;

  constructor() {
    const { handle, path } = loadLibrary(libraries.nvrtc);
    this.#path = path;
    preloadBuiltins(path);
    this.#functions = declareFunctions(
      handle,
      prototypes,
      (name) => new DeviceError(`${path} has no ${name}: take a newer NVRTC.`),
    );
    this.#describe = handle.func('const char *nvrtcGetErrorString(int result)');
    const { address } = this.#result;
    this.#check(this.#functions.nvrtcVersion(address, address + 4), 'nvrtcVersion');
    this.version = `${this.#result.readInt32(0)}.${this.#result.readInt32(4)}`;
  }

  compile({ name, source, headers, architecture, options }: CompileRequest): Uint8Array {
    const functions = this.#functions;
    const created = functions.nvrtcCreateProgram(
      this.#result.address,
      source,
      `${name}.cu`,
      headers.size,
      [...headers.values()],
      [...headers.keys()],
    );
    this.#check(created, 'nvrtcCreateProgram');
    const program = this.#result.readUint64(0);
    try {
      const all = [`--gpu-architecture=${architecture}`, '--std=c++17', ...options];
      const result = keepExitSignals(() => functions.nvrtcCompileProgram(program, all.length, all));
      if (result !== 0) {
        this.requireArchitecture(architecture);
        const log = this.#log(program) || this.#describe(result);
        throw new KernelCompileError(name, `${all.join(' ')}\n${log}`, source);
      }
      return this.#image(program);
    } finally {
      this.#result.writeInt64(0, program);
      functions.nvrtcDestroyProgram(this.#result.address);
    }
  }

  /** Throws an UnusableLibraryError for one that it does not compile for; of such it says itself that an option is invalid. */
  requireArchitecture(architecture: string): void {
    const known = this.#knownArchitectures();
    if (known.includes(Number.parseInt(architecture.slice('sm_'.length), 10))) return;
    throw new UnusableLibraryError(
      `NVRTC ${this.version} (${this.#path}) does not compile for ${architecture}, only up to sm_${Math.max(...known)}.`,
      'Take a newer one: `pip install --upgrade nvidia-cuda-nvrtc`, or a newer CUDA toolkit; name the folder of its libnvrtc in ' +
        'ROOFLINE_CUDA_LIBRARIES.',
    );
  }

  #knownArchitectures(): number[] {
    const { address } = this.#result;
    this.#check(this.#functions.nvrtcGetNumSupportedArchs(address), 'nvrtcGetNumSupportedArchs');
    const count = this.#result.readInt32(0);
    const list = new HostMemory(4 * count);
    this.#check(this.#functions.nvrtcGetSupportedArchs(list.address), 'nvrtcGetSupportedArchs');
    return Array.from({ length: count }, (_, i) => list.readInt32(4 * i));
  }

  #image(program: number): Uint8Array {
    this.#check(this.#functions.nvrtcGetCUBINSize(program, this.#result.address), 'nvrtcGetCUBINSize');
    const image = new Uint8Array(this.#result.readUint64(0));
    this.#check(this.#functions.nvrtcGetCUBIN(program, image), 'nvrtcGetCUBIN');
    return image;
  }

  #log(program: number): string {
    this.#check(
      this.#functions.nvrtcGetProgramLogSize(program, this.#result.address),
      'nvrtcGetProgramLogSize',
    );
    const log = Buffer.alloc(this.#result.readUint64(0));
    this.#check(this.#functions.nvrtcGetProgramLog(program, log), 'nvrtcGetProgramLog');
    return log.toString('utf8').replace(/\0+$/, '').trim();
  }

  #check(result: number, call: string): void {
    if (result !== 0) throw new DeviceError(`${call} failed: ${this.#describe(result)}.`);
  }
}

// NVRTC opens its builtins by their bare name, which the loader finds in a wheel only if they are loaded already.
function preloadBuiltins(path: string): void {
  if (!path.includes('/')) return;
  const folder = dirname(realpathSync(path));
  for (const file of readdirSync(folder)) {
    if (/^libnvrtc-builtins\.so\.\d/.test(file)) preloaded.push(ffi().load(join(folder, file)));
  }
}

// Kept, because a collected handle unloads its library.
const preloaded: unknown[] = [];

let nvrtc: Nvrtc | null = null;

/** NVRTC, loaded at first use. Throws a LibraryNotFoundError. */
export function loadNvrtc(): Nvrtc {
  nvrtc ??= new Nvrtc();
  return nvrtc;
}
