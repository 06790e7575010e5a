import { DeviceError, HostMemory, LibraryNotFoundError, ffi, keepLibrary } from '@roofline/cuda/host';
import { fixCpuThreads } from './threads.ts';
import { findOnnxRuntime, GLIBC_REMEDY, hasMusl } from './find-onnx-runtime.ts';
import { disableTelemetry } from './telemetry.ts';

/** Handles and addresses are numbers, as they are below 2^53. A returned status of 0 is success. */
type ApiFunction = (...arguments_: readonly (number | string | Uint8Array)[]) => number;

/** The version of the C API that is requested. Newer libraries still have it: the table only ever grows. */
const apiVersion = 17;

/** Positions in OrtApi (onnxruntime_c_api.h), C signatures: p pointer, z size, i int, s string, f path, b bytes. */
const apiTable = {
  GetErrorMessage: [2, 'p', 'p'],
  CreateSessionFromArray: [8, 'p', 'pbzpp'],
  Run: [9, 'p', 'pppppppp'],
  CreateSessionOptions: [10, 'p', 'p'],
  EnableProfiling: [14, 'p', 'pf'],
  SetSessionGraphOptimizationLevel: [23, 'p', 'pi'],
  CreateRunOptions: [39, 'p', 'p'],
  CreateTensorWithDataAsOrtValue: [49, 'p', 'ppzpzip'],
  CreateCpuMemoryInfo: [69, 'p', 'iip'],
  AllocatorFree: [76, 'p', 'pp'],
  GetAllocatorWithDefaultOptions: [78, 'p', 'p'],
  ReleaseStatus: [93, 'v', 'p'],
  ReleaseSession: [95, 'v', 'p'],
  ReleaseValue: [96, 'v', 'p'],
  ReleaseSessionOptions: [100, 'v', 'p'],
  SessionEndProfiling: [110, 'p', 'ppp'],
  CreateEnvWithGlobalThreadPools: [119, 'p', 'ispp'],
  DisablePerSessionThreads: [120, 'p', 'p'],
  CreateThreadingOptions: [121, 'p', 'p'],
  AddSessionConfigEntry: [130, 'p', 'pss'],
  CreateAndRegisterAllocator: [144, 'p', 'ppp'],
  SetGlobalIntraOpNumThreads: [147, 'p', 'pi'],
  SetGlobalInterOpNumThreads: [148, 'p', 'pi'],
  SetGlobalSpinControl: [149, 'p', 'pi'],
  CreateArenaCfg: [156, 'p', 'ziiip'],
  AddRunConfigEntry: [165, 'p', 'pss'],
} as const;

type Api = Readonly<Record<keyof typeof apiTable, ApiFunction>>;

const cTypes = {
  p: 'uint64_t',
  z: 'size_t',
  i: 'int',
  s: 'const char *',
  f: process.platform === 'win32' ? 'const char16_t *' : 'const char *',
  b: 'const uint8_t *',
  v: 'void',
} as const;

/** Errors come back as statuses; if they were also logged, they would appear twice on the terminal. */
const loggingFatal = 4;
const arenaAllocator = 1;
const defaultMemory = 0;
const noOptimization = 0;
/** Grow the arena by what is requested, not to the next power of two. */
const growAsRequested = 1;

/** The part of ONNX Runtime's C API that is used, with one thread pool and one arena for all sessions. */
export class OnnxRuntime {
  readonly version: string;
  readonly threads: number;
  readonly #api: Api;
  /** Kept, because garbage-collecting it would unload the library while its functions are in use. */
  readonly library: object;
  readonly #out = new HostMemory(8);
  readonly #environment: number;
  readonly #memoryInfo: number;
  readonly #sessionOptions: number;
  #shrinkingRun: number | null = null;

  constructor({ library, api, version }: LoadedApi) {
    this.library = library;
    this.#api = api;
    this.version = version;
    this.threads = fixCpuThreads();
    this.#environment = this.#createEnvironment();
    this.#memoryInfo = this.#create((out) => api.CreateCpuMemoryInfo(arenaAllocator, defaultMemory, out));
    // What graphs need between their nodes comes from one arena: one for each session would keep the peak of each, and without
    // any each run would pay for fresh pages.
    const arena = this.#create((out) => api.CreateArenaCfg(0, growAsRequested, -1, -1, out));
    this.check(api.CreateAndRegisterAllocator(this.#environment, this.#memoryInfo, arena));
    this.#sessionOptions = this.#createSessionOptions();
  }

  /**
   * Creates a session of an encoded model; `model` may be reused afterwards. With a `tracePrefix` each node of each run is
   * timed; see `endTrace`. Throws a DeviceError.
   */
  createSession(model: Uint8Array, tracePrefix?: string): number {
    if (tracePrefix === undefined) return this.#createSession(model, this.#sessionOptions);
    const options = this.#createSessionOptions();
    try {
      this.check(this.#api.EnableProfiling(options, tracePrefix));
      return this.#createSession(model, options);
    } finally {
      this.#api.ReleaseSessionOptions(options);
    }
  }

  /** Ends the timing of nodes. Returns the path of the trace, which starts with the prefix. */
  endTrace(session: number): string {
    const allocator = this.#create((out) => this.#api.GetAllocatorWithDefaultOptions(out));
    const path = this.#create((out) => this.#api.SessionEndProfiling(session, allocator, out));
    try {
      return ffi().decode(BigInt(path), 'char', -1) as string;
    } finally {
      this.check(this.#api.AllocatorFree(allocator, path));
    }
  }

  releaseSession(session: number): void {
    this.#api.ReleaseSession(session);
  }

  /** Wraps memory as a tensor (an OrtValue) and writes its handle to `outAddress`. */
  createTensor(
    address: number,
    byteLength: number,
    shapeAddress: number,
    rank: number,
    onnxType: number,
    outAddress: number,
  ): void {
    this.check(
      this.#api.CreateTensorWithDataAsOrtValue(
        this.#memoryInfo,
        address,
        byteLength,
        shapeAddress,
        rank,
        onnxType,
        outAddress,
      ),
    );
  }

  releaseTensor(value: number): void {
    this.#api.ReleaseValue(value);
  }

  /** Options of a run that makes the arena give back, at its end, what no graph needs. */
  shrinkingRun(): number {
    return (this.#shrinkingRun ??= this.#createShrinkingRun());
  }

  /** Runs a session over arrays of names and of values, each given by address and length. */
  run(
    session: number,
    inputNames: number,
    inputs: number,
    inputCount: number,
    outputNames: number,
    outputs: number,
    outputCount: number,
    options = 0,
  ): void {
    this.check(
      this.#api.Run(session, options, inputNames, inputs, inputCount, outputNames, outputCount, outputs),
    );
  }

  /** Throws a DeviceError with ONNX Runtime's message unless `status` is success. */
  check(status: number): void {
    if (status === 0) return;
    const message = ffi().decode(BigInt(this.#api.GetErrorMessage(status)), 'char', -1) as string;
    this.#api.ReleaseStatus(status);
    throw new DeviceError(`ONNX Runtime: ${message}`);
  }

  #createEnvironment(): number {
    const api = this.#api;
    const options = this.#create((out) => api.CreateThreadingOptions(out));
    this.check(api.SetGlobalIntraOpNumThreads(options, this.threads));
    this.check(api.SetGlobalInterOpNumThreads(options, 1));
    this.check(api.SetGlobalSpinControl(options, 1));
    return this.#create((out) => api.CreateEnvWithGlobalThreadPools(loggingFatal, 'roofline', options, out));
  }

  #createSession(model: Uint8Array, options: number): number {
    return this.#create((out) =>
      this.#api.CreateSessionFromArray(this.#environment, model, model.length, options, out),
    );
  }

  #createSessionOptions(): number {
    const api = this.#api;
    const options = this.#create((out) => api.CreateSessionOptions(out));
    // Optimization costs more per session than it gains, and would remove the casts that round.
    this.check(api.SetSessionGraphOptimizationLevel(options, noOptimization));
    this.check(api.DisablePerSessionThreads(options));
    this.check(api.AddSessionConfigEntry(options, 'session.use_env_allocators', '1'));
    return options;
  }

  #createShrinkingRun(): number {
    const options = this.#create((out) => this.#api.CreateRunOptions(out));
    this.check(this.#api.AddRunConfigEntry(options, 'memory.enable_memory_arena_shrinkage', 'cpu:0'));
    return options;
  }

  #create(create: (outAddress: number) => number): number {
    this.check(create(this.#out.address));
    return this.#out.readUint64(0);
  }
}

let runtime: OnnxRuntime | null = null;

/** ONNX Runtime, loaded at the first call. Throws a LibraryNotFoundError if there is no binary for this platform. */
export function onnxRuntime(): OnnxRuntime {
  runtime ??= new OnnxRuntime(loadApi());
  return runtime;
}

/** The loaded runtime; null before the first op. */
export function loadedOnnxRuntime(): OnnxRuntime | null {
  return runtime;
}

interface LoadedApi {
  readonly library: object;
  readonly api: Api;
  readonly version: string;
}

function loadApi(): LoadedApi {
  const koffi = ffi();
  const { path } = findOnnxRuntime();
  const library = openLibrary(path);
  const base = library.func('OrtGetApiBase', 'void *', [])() as bigint;
  const [getApi, getVersion] = koffi.decode(base, koffi.array('void *', 2)) as [bigint, bigint];
  const table = (koffi.decode(getApi, koffi.proto('void *', ['uint32_t'])) as (version: number) => bigint)(
    apiVersion,
  );
  const version = (koffi.decode(getVersion, koffi.proto('const char *', [])) as () => string)();
  const length = 1 + Math.max(...Object.values(apiTable).map(([index]) => index));
  const pointers = koffi.decode(table, koffi.array('void *', length)) as bigint[];
  const entries = Object.entries(apiTable).map(([name, [index, result, parameters]]) => {
    const types = Array.from(parameters, (letter) => cTypes[letter as keyof typeof cTypes]);
    return [name, koffi.decode(pointers[index]!, koffi.proto(cTypes[result], types)) as ApiFunction];
  });
  return { library, api: Object.fromEntries(entries) as Api, version };
}

function openLibrary(path: string) {
  disableTelemetry();
  try {
    const library = ffi().load(path);
    keepLibrary(path);
    return library;
  } catch (cause) {
    throw new LibraryNotFoundError(
      'ONNX Runtime',
      [path],
      hasMusl()
        ? GLIBC_REMEDY
        : 'The library is there, but the system refuses to load it: install the package it lies in anew.',
      { cause },
    );
  }
}
