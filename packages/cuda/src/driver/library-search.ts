import { checkObject, checkText, wrongArgument } from '../base/check-value.ts';
import { existsSync, readFileSync, readdirSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import type { Environment } from '../base/host/environment.ts';
import type koffi from 'koffi';
import { LibraryNotFoundError } from '../base/errors.ts';
import { ffi } from '../base/host/ffi.ts';
import { keepLibrary } from '../base/host/keep-library.ts';

/** A shared library and how to get it. */
export interface LibraryDescription {
  /** As `roofline doctor` names it. */
  readonly name: string;
  /** File names, best first. */
  readonly files: readonly string[];
  readonly remedy: string;
}

const pipInstall = (wheel: string) =>
  `Install the CUDA toolkit, or \`pip install ${wheel}\`, or name its folder in ROOFLINE_CUDA_LIBRARIES.`;

/** The libraries of NVIDIA that are found at first use, by their names. */
export const libraries = {
  cuda: {
    name: 'libcuda',
    files: ['libcuda.so.1'],
    remedy: "It comes with NVIDIA's driver: install that; for tensors there is the device 'cpu'.",
  },
  nvrtc: {
    name: 'libnvrtc',
    files: ['libnvrtc.so.13', 'libnvrtc.so.12', 'libnvrtc.so'],
    remedy: pipInstall('nvidia-cuda-nvrtc'),
  },
  cublasLt: {
    name: 'libcublasLt',
    files: ['libcublasLt.so.13', 'libcublasLt.so.12', 'libcublasLt.so'],
    remedy: pipInstall('nvidia-cublas'),
  },
  nccl: {
    name: 'libnccl',
    files: ['libnccl.so.2', 'libnccl.so'],
    remedy: pipInstall('nvidia-nccl-cu13'),
  },
  cupti: {
    name: 'libcupti',
    files: ['libcupti.so.13', 'libcupti.so.12', 'libcupti.so'],
    remedy: pipInstall('nvidia-cuda-cupti'),
  },
  nvml: {
    name: 'libnvidia-ml',
    files: ['libnvidia-ml.so.1'],
    remedy: "It comes with NVIDIA's driver: install that, or pass it into the container.",
  },
} as const satisfies Record<string, LibraryDescription>;

/** A native library with the functions that were asked of it. */
export interface LoadedLibrary {
  readonly handle: ReturnType<typeof koffi.load>;
  /** Where the loader found it. */
  readonly path: string;
}

// A collected handle unloads the library under the functions that came from it, so handles are kept.
const loaded = new Map<LibraryDescription, LoadedLibrary>();

/**
 * Loads a library from the folders of ROOFLINE_CUDA_LIBRARIES, the loader's own path, the CUDA toolkit's
 * folders or Python's wheels, in this order. Throws a LibraryNotFoundError that says where it looked.
 */
export function loadLibrary(description: LibraryDescription): LoadedLibrary {
  checkObject('loadLibrary', 'the description', description);
  const known = loaded.get(description);
  if (known) return known;
  checkText('loadLibrary', 'the name', description.name);
  checkText('loadLibrary', 'the remedy', description.remedy);
  if (!Array.isArray(description.files)) {
    throw wrongArgument('loadLibrary', 'files', 'a list of names', description.files);
  }
  for (const file of description.files) checkText('loadLibrary', 'a file', file);
  const failures: string[] = [];
  // Outside of the attempts: without it no library can be loaded, wherever it lies.
  const { load } = ffi();
  for (const candidate of candidates(description, process.env)) {
    try {
      const handle = load(candidate);
      const library = { handle, path: candidate.includes('/') ? candidate : loadedPath(candidate) };
      keepLibrary(library.path);
      loaded.set(description, library);
      return library;
    } catch (error) {
      if (candidate.includes('/')) failures.push(`${candidate}: ${(error as Error).message}`);
    }
  }
  const searched = [...description.files, ...searchFolders(process.env)];
  const cause = failures.length > 0 ? new Error(failures.join('\n')) : undefined;
  throw new LibraryNotFoundError(description.name, searched, description.remedy, { cause });
}

/** What to hand to the loader, best first: full paths that exist, and bare names for its own search. */
export function candidates({ files }: LibraryDescription, environment: Environment): string[] {
  const inFolders = (folders: readonly string[]) =>
    files.flatMap((file) => folders.map((folder) => join(folder, file))).filter((path) => existsSync(path));
  return [...inFolders(overrideFolders(environment)), ...files, ...inFolders(searchFolders(environment))];
}

/** The folders outside the loader's own path where CUDA's libraries may lie. */
export function searchFolders(environment: Environment): string[] {
  const toolkits = [environment.CUDA_HOME, environment.CUDA_PATH, '/usr/local/cuda', '/opt/cuda'].filter(
    isSet,
  );
  const folders = [
    ...overrideFolders(environment),
    ...toolkits.flatMap((toolkit) => [
      join(toolkit, 'lib64'),
      join(toolkit, 'lib'),
      join(toolkit, 'extras', 'CUPTI', 'lib64'),
    ]),
    ...sitePackages(environment).flatMap((folder) => wheelFolders(join(folder, 'nvidia'))),
  ];
  return [...new Set(folders)].filter((folder) => existsSync(folder));
}

function overrideFolders(environment: Environment): string[] {
  return (environment.ROOFLINE_CUDA_LIBRARIES ?? '').split(delimiter).filter(isSet);
}

/** Python's package folders, found without running Python: the active environment's first. */
export function sitePackages(environment: Environment): string[] {
  const interpreters = (environment.PATH ?? '')
    .split(delimiter)
    .filter(isSet)
    .map((folder) => join(folder, 'python3'))
    .filter((path) => existsSync(path));
  const prefixes = [
    environment.VIRTUAL_ENV,
    environment.CONDA_PREFIX,
    ...interpreters.flatMap((path) => [prefixOf(path), prefixOf(realpathSync(path))]),
    join(homedir(), '.local'),
    '/usr/local',
    '/usr',
  ].filter(isSet);
  const listed = (environment.PYTHONPATH ?? '').split(delimiter).filter(isSet);
  return [...new Set([...listed, ...prefixes.flatMap(packagesUnder)])];
}

function prefixOf(interpreter: string): string {
  return dirname(dirname(interpreter));
}

function packagesUnder(prefix: string): string[] {
  const library = join(prefix, 'lib');
  const versions = namesIn(library).filter((name) => /^python3(\.\d+)?$/.test(name));
  return versions
    .sort((a, b) => b.localeCompare(a, 'en', { numeric: true }))
    .flatMap((version) => ['site-packages', 'dist-packages'].map((kind) => join(library, version, kind)))
    .filter((folder) => existsSync(folder));
}

// Wheels put libraries into nvidia/cu13/lib, nvidia/nccl/lib, older ones into nvidia/cublas/lib and so on.
function wheelFolders(nvidia: string): string[] {
  return namesIn(nvidia).map((name) => join(nvidia, name, 'lib'));
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}

function isSet(value: string | undefined): value is string {
  return value !== undefined && value !== '';
}

/** The file that the loader mapped for a bare name. */
function loadedPath(file: string): string {
  try {
    const line = readFileSync('/proc/self/maps', 'utf8')
      .split('\n')
      .find((entry) => entry.includes(`/${file}`));
    return line?.slice(line.indexOf('/')) ?? file;
  } catch {
    return file;
  }
}
