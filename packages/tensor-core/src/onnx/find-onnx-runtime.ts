import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { LibraryNotFoundError } from '@roofline/cuda/host';

/** The library of each platform, by `process.platform` and `process.arch`. */
const libraries: Readonly<Record<string, string>> = {
  'linux-x64': 'libonnxruntime.so.1',
  'linux-arm64': 'libonnxruntime.so.1',
  'darwin-arm64': 'libonnxruntime.1.dylib',
  'win32-x64': 'onnxruntime.dll',
  'win32-arm64': 'onnxruntime.dll',
};

export interface FoundLibrary {
  readonly path: string;
  /** The version of the package that contains it. */
  readonly version: string;
}

/**
 * ONNX Runtime's library: that of our package for this platform, an optional dependency, or else the one in onnxruntime-node,
 * as in a checkout of this repository. Throws a LibraryNotFoundError.
 */
export function findOnnxRuntime(
  platform = `${process.platform}-${process.arch}`,
  resolve: (specifier: string) => string = createRequire(import.meta.url).resolve,
): FoundLibrary {
  const library = libraries[platform];
  const own = `@roofline/onnxruntime-${platform}`;
  const searched = [`the package ${own}`];
  if (library === undefined) {
    throw new LibraryNotFoundError(
      'ONNX Runtime',
      searched,
      `There is none for ${platform}; there is for ${Object.keys(libraries).join(', ')}. Use one of those, or a CUDA device.`,
    );
  }
  const found =
    find(resolve, own, (folder) => [join(folder, library)]) ??
    find(resolve, 'onnxruntime-node', (folder) => shippedLibraries(folder, platform, library));
  if (found !== null) return found;
  const remedy = hasMusl() ? GLIBC_REMEDY : `Install it: \`npm install ${own}\`.`;
  throw new LibraryNotFoundError('ONNX Runtime', searched, remedy);
}

/** What to do on a Linux whose C library does not suit ONNX Runtime's library. */
export const GLIBC_REMEDY =
  'Its library needs glibc, and this system has musl (Alpine, say): use a Debian- or Red-Hat-like image.';

export function hasMusl(): boolean {
  if (process.platform !== 'linux') return false;
  return !('glibcVersionRuntime' in (process.report.getReport() as { header: object }).header);
}

/** The first of the places in a package that exists; null if the package, or all of them, are missing. */
function find(
  resolve: (specifier: string) => string,
  name: string,
  placesIn: (folder: string) => readonly string[],
): FoundLibrary | null {
  const manifest = manifestOf(resolve, name);
  const path = manifest === null ? undefined : placesIn(dirname(manifest)).find((place) => existsSync(place));
  if (manifest === null || path === undefined) return null;
  const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string };
  return { path, version };
}

function manifestOf(resolve: (specifier: string) => string, name: string): string | null {
  try {
    return resolve(`${name}/package.json`);
  } catch {
    return null;
  }
}

/** onnxruntime-node contains the libraries of all platforms, by the version of Node's interface that they were built for. */
function shippedLibraries(folder: string, platform: string, library: string): string[] {
  const binaries = join(folder, 'bin');
  if (!existsSync(binaries)) return [];
  return readdirSync(binaries).map((napi) => join(binaries, napi, ...platform.split('-'), library));
}
