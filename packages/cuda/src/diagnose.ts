import { LibraryNotFoundError } from './base/errors.ts';
import { architectureOf, oldestCapability } from './architecture.ts';
import { loadNvrtc } from './nvrtc/nvrtc.ts';
import { gpuCount, driverVersion, loadDriver } from './driver/driver.ts';
import { UnusableLibraryError } from './driver/unusable-library-error.ts';
import { HostMemory } from './base/host/host-memory.ts';
import { gpuClocks } from './driver/nvml.ts';
import {
  type LibraryDescription,
  type LoadedLibrary,
  libraries,
  loadLibrary,
} from './driver/library-search.ts';
import { factsOf, formatCudaVersion, formatTenths } from './properties.ts';

/** One line of `roofline doctor`. */
export interface Diagnosis {
  readonly component: string;
  readonly status: 'found' | 'missing' | 'unusable';
  readonly detail: string;
  readonly path?: string;
  readonly version?: string;
  readonly remedy?: string;
}

/** What of CUDA is found here: the driver, GPUs and libraries. Never throws. */
export function diagnose(): Diagnosis[] {
  return [
    diagnoseDriver(),
    ...diagnoseGpus(),
    diagnoseLibrary(libraries.nvrtc, 'compiles kernels', nvrtcVersion),
    diagnoseLibrary(libraries.cublasLt, 'multiplies matrices', cublasLtVersion),
    diagnoseLibrary(libraries.nccl, 'connects several GPUs', ncclVersion),
    diagnoseLibrary(libraries.cupti, 'records kernels for the profiler', cuptiVersion),
    diagnoseLibrary(libraries.nvml, 'says what holds the clocks of a GPU down', nvmlVersion),
  ];
}

function diagnoseDriver(): Diagnosis {
  return diagnoseLibrary(libraries.cuda, "NVIDIA's driver", () =>
    formatCudaVersion(driverVersion(loadDriver())),
  );
}

function diagnoseGpus(): Diagnosis[] {
  let count: number;
  try {
    count = gpuCount();
  } catch (error) {
    return [{ component: 'GPU', status: 'unusable', detail: (error as Error).message }];
  }
  if (count === 0) {
    const remedy = "Take a machine with an NVIDIA GPU; for tensors there is the device 'cpu'.";
    return [{ component: 'GPU', status: 'missing', detail: 'no GPU that CUDA can use', remedy }];
  }
  return Array.from({ length: count }, (_, index) => diagnoseGpu(index));
}

function diagnoseGpu(index: number): Diagnosis {
  const component = `cuda:${index}`;
  try {
    const { name, computeCapability, multiprocessors, totalBytes } = factsOf(loadDriver(), index);
    const gibibytes = (totalBytes / 2 ** 30).toFixed(0);
    const detail = `${name}, compute capability ${formatTenths(computeCapability)}, ${multiprocessors} multiprocessors, ${gibibytes} GiB`;
    return computeCapability >= oldestCapability
      ? { component, status: 'found', detail }
      : {
          component,
          status: 'unusable',
          detail,
          remedy: `Compute capability ${formatTenths(oldestCapability)} (Ampere) or newer is needed.`,
        };
  } catch (error) {
    return { component, status: 'unusable', detail: (error as Error).message };
  }
}

function diagnoseLibrary(
  description: LibraryDescription,
  purpose: string,
  version: (library: LoadedLibrary) => string,
): Diagnosis {
  const { name: component } = description;
  let path: string | undefined;
  try {
    const library = loadLibrary(description);
    path = library.path;
    return { component, status: 'found', detail: purpose, path, version: version(library) };
  } catch (error) {
    if (error instanceof LibraryNotFoundError && error.cause === undefined) {
      return { component, status: 'missing', detail: purpose, remedy: description.remedy };
    }
    // For a library that is there the loader's own words, as "was not found" would be wrong.
    const reason = error instanceof LibraryNotFoundError ? error.cause : error;
    const { problem: detail, remedy } =
      reason instanceof UnusableLibraryError
        ? reason
        : { problem: (reason as Error).message, remedy: description.remedy };
    return { component, status: 'unusable', detail, ...(path === undefined ? {} : { path }), remedy };
  }
}

/** Throws an UnusableLibraryError if NVRTC does not compile for a GPU that is here. */
function nvrtcVersion(): string {
  const nvrtc = loadNvrtc();
  for (let index = 0; index < gpuCount(); index++) {
    const { computeCapability } = factsOf(loadDriver(), index);
    if (computeCapability >= oldestCapability) nvrtc.requireArchitecture(architectureOf(computeCapability));
  }
  return nvrtc.version;
}

function cublasLtVersion({ handle }: LoadedLibrary): string {
  return dotted(Number(handle.func('size_t cublasLtGetVersion()')()), 10_000);
}

function ncclVersion({ handle }: LoadedLibrary): string {
  const memory = new HostMemory(8);
  handle.func('int ncclGetVersion(uintptr_t version)')(memory.address);
  return dotted(memory.readInt32(0), 10_000);
}

function cuptiVersion({ handle }: LoadedLibrary): string {
  const memory = new HostMemory(8);
  handle.func('int cuptiGetVersion(uintptr_t version)')(memory.address);
  return String(memory.readInt32(0));
}

/** Throws an UnusableLibraryError where it says nothing of the clocks of a GPU that is here. */
function nvmlVersion({ handle }: LoadedLibrary): string {
  const memory = new HostMemory(80);
  handle.func('int nvmlSystemGetNVMLVersion(uintptr_t version, uint length)')(memory.address, 80);
  for (let index = 0; index < gpuCount(); index++) {
    const { powerNs, thermalNs, limits } = gpuClocks(factsOf(loadDriver(), index).pciBusId).read();
    if (powerNs === null && thermalNs === null && limits === null)
      throw new UnusableLibraryError(
        `It does not say what holds the clocks of cuda:${index} down.`,
        'Records do not say it either; a newer driver may, and some virtual machines never do.',
      );
  }
  return Buffer.from(memory.bytes.subarray(0, memory.bytes.indexOf(0))).toString('latin1');
}

/** 130002 as `13.0.2`. */
function dotted(version: number, majorUnit: number): string {
  return `${Math.floor(version / majorUnit)}.${Math.floor((version % majorUnit) / 100)}.${version % 100}`;
}
