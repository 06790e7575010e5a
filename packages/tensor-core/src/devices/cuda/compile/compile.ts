import { existsSync, readFileSync } from 'node:fs';
import { kernelSource } from '../../../host/package-root.ts';
import { DeviceError } from '../../../errors.ts';
import { KernelCache, cacheFolder, cacheKey } from './kernel-cache.ts';
import { type CompileRequest, type KernelCompiler, loadNvrtc } from './nvrtc.ts';

/** Preprocessor definitions. */
export type Defines = Readonly<Record<string, string | number>>;

const texts = new Map<string, string>();

function readText(url: URL): string {
  let text = texts.get(url.href);
  if (text === undefined) {
    text = readFileSync(url, 'utf8');
    texts.set(url.href, text);
  }
  return text;
}

/** Texts in the place of headers, by their names. */
export type GivenHeaders = Readonly<Record<string, string>>;

/**
 * The files that `source` includes by quotes, and those that they include, by name. They lie beside the source, atop its
 * package's folder `kernels`, or atop that of this package, unless they are given. Throws a DeviceError for one that is missing.
 */
export function collectHeaders(source: string, folder: URL, given: GivenHeaders = {}): Map<string, string> {
  const headers = new Map<string, string>();
  const folders = [folder, ...aboveRooms(folder)];
  const pending = [source];
  for (let text = pending.pop(); text !== undefined; text = pending.pop()) {
    for (const [, file] of text.matchAll(/^\s*#\s*include\s*"([^"]+)"/gm)) {
      if (headers.has(file!)) continue;
      const included = given[file!] ?? headerText(file!, folders);
      if (included === null)
        throw new DeviceError(`#include "${file}": there is no such file in ${folder.pathname}.`);
      headers.set(file!, included);
      pending.push(included);
    }
  }
  return headers;
}

function headerText(file: string, folders: readonly URL[]): string | null {
  const places = [...folders.map((folder) => new URL(file, folder)), kernelSource(file)];
  const url = places.find((candidate) => existsSync(candidate));
  return url ? readText(url) : null;
}

/** The folder `kernels` that `folder` is a room of, if it is one. */
function aboveRooms({ href }: URL): URL[] {
  const root = /^.*\/kernels\//.exec(href)?.[0];
  return root === undefined ? [] : [new URL(root)];
}

type Cache = Pick<KernelCache, 'read' | 'write'>;

/** Compiles kernels for one architecture, or takes them from the disk cache. */
export class KernelBuilder {
  readonly architecture: string;
  readonly #cache: Cache;
  readonly #loadCompiler: () => KernelCompiler;

  constructor(architecture: string, loadCompiler = loadNvrtc, cache: Cache = new KernelCache(cacheFolder())) {
    this.architecture = architecture;
    this.#loadCompiler = loadCompiler;
    this.#cache = cache;
  }

  /** The machine code of a `.cu` file. Throws a KernelCompileError. */
  buildFile(source: URL, defines: Defines = {}, headers: GivenHeaders = {}): Uint8Array {
    return this.#build(this.#fileRequest(source, defines, headers));
  }

  /** The machine code of a generated source. Throws a KernelCompileError. */
  buildText(name: string, source: string): Uint8Array {
    return this.#build(this.#request(name, source, kernelSource(''), {}));
  }

  /** What the cache calls the machine code of a `.cu` file: the same for files that compile alike. */
  keyOfFile(source: URL, defines: Defines = {}): string {
    return this.#keyOf(this.#fileRequest(source, defines));
  }

  /** Whether the cache has what `keyOfFile` names. */
  isCached(key: string): boolean {
    return this.#cache.read(key) !== undefined;
  }

  #fileRequest(source: URL, defines: Defines, given: GivenHeaders = {}): CompileRequest {
    return this.#request(kernelFileName(source), readText(source), new URL('.', source), defines, given);
  }

  #request(
    name: string,
    source: string,
    folder: URL,
    defines: Defines,
    given: GivenHeaders = {},
  ): CompileRequest {
    const headers = collectHeaders(source, folder, given);
    const options = Object.entries(defines).map(([macro, value]) => `--define-macro=${macro}=${value}`);
    return { name, source, headers, architecture: this.architecture, options };
  }

  #keyOf({ source, headers, architecture, options }: CompileRequest): string {
    const { version } = this.#loadCompiler();
    return cacheKey([version, architecture, ...options, source, ...[...headers].flat()]);
  }

  #build(request: CompileRequest): Uint8Array {
    const compiler = this.#loadCompiler();
    const key = this.#keyOf(request);
    const cached = this.#cache.read(key);
    if (cached) return cached;
    const image = compiler.compile(request);
    this.#cache.write(key, image);
    return image;
  }
}

/** What errors call the kernels of a file. */
export function kernelFileName(source: URL): string {
  return source.pathname.slice(source.pathname.lastIndexOf('/') + 1).replace(/\.cu$/, '');
}
