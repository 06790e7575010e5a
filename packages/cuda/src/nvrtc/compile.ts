import { existsSync, readFileSync } from 'node:fs';
import { kernelSource } from '../base/host/package-root.ts';
import { DeviceError } from '../base/errors.ts';
import type { KernelSpec } from '../kernel.ts';
import { checkDeclared } from '../launch/declared-parameters.ts';
import type { BeginBatch, KernelBatch } from './kernel-batch.ts';
import { KernelCache, cacheFolder, cacheKey } from './kernel-cache.ts';
import { type CompileRequest, type KernelCompiler, loadNvrtc } from './nvrtc.ts';

/** Preprocessor definitions. */
export type Defines = Readonly<Record<string, string | number>>;

const texts = new Map<string, string>();

function readText(url: URL): string {
  let text = texts.get(url.href);
  if (text === undefined) {
    try {
      text = readFileSync(url, 'utf8');
    } catch (cause) {
      throw new DeviceError(`The kernel source ${url.href} cannot be read: ${(cause as Error).message}.`, {
        cause,
      });
    }
    texts.set(url.href, text);
  }
  return text;
}

/** Texts in the place of headers, by their names. */
export type GivenHeaders = Readonly<Record<string, string>>;

/**
 * The files that `source` includes by quotes, and those that they include, by name. They lie next to the source, atop its
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

/** What a KernelBuilder stands on. */
export interface BuilderParts {
  readonly loadCompiler?: () => KernelCompiler;
  readonly cache?: Cache;
  /** Default null: all kernels are compiled where they are asked for. */
  readonly beginBatch?: BeginBatch | null;
}

/** A kernel that is still to be compiled was asked for inside `KernelBuilder.postpone`. */
export class KernelPostponed extends Error {}

/** Compiles kernels for one architecture, or takes them from the disk cache. */
export class KernelBuilder {
  readonly architecture: string;
  readonly #cache: Cache;
  readonly #loadCompiler: () => KernelCompiler;
  readonly #beginBatch: BeginBatch | null;
  /** What is compiled aside and nobody has taken, by its key. */
  readonly #begun = new Map<string, { readonly batch: KernelBatch; readonly index: number }>();
  /** What `beginFiles` was given. */
  readonly #begunFiles = new Set<string>();
  #postponed: CompileRequest[] | null = null;

  constructor(architecture: string, parts: BuilderParts = {}) {
    const { loadCompiler = loadNvrtc, cache = new KernelCache(cacheFolder()), beginBatch = null } = parts;
    this.architecture = architecture;
    this.#loadCompiler = loadCompiler;
    this.#cache = cache;
    this.#beginBatch = beginBatch;
  }

  /** The machine code of a `.cu` file. Throws a KernelCompileError. */
  buildFile(source: URL, defines: Defines = {}, headers: GivenHeaders = {}): Uint8Array {
    return this.build(this.fileRequest(source, defines, headers));
  }

  /** Throws a DeviceError for a kernel that its source declares with other parameters than the spec has. */
  checkDeclared(spec: KernelSpec): void {
    checkDeclared(spec, readText(spec.source));
  }

  /** The machine code of a generated source. Throws a KernelCompileError. */
  buildText(name: string, source: string): Uint8Array {
    return this.build(this.#request(name, source, kernelSource(''), {}));
  }

  /** What the compiler is asked for a `.cu` file. */
  fileRequest(source: URL, defines: Defines = {}, given: GivenHeaders = {}): CompileRequest {
    return this.#request(kernelFileName(source), readText(source), new URL('.', source), defines, given);
  }

  /** What the cache calls the machine code of a request: the same for those that compile alike. */
  keyOf({ source, headers, architecture, options }: CompileRequest): string {
    const { version } = this.#loadCompiler();
    return cacheKey([version, architecture, ...options, source, ...[...headers].flat()]);
  }

  /** Whether the cache has what `keyOf` names. */
  isCached(key: string): boolean {
    return this.#cache.read(key) !== undefined;
  }

  /** Keeps an image that was compiled elsewhere; gives whether the cache could. */
  keep(key: string, image: Uint8Array): boolean {
    const isKept = this.#cache.write(key, image);
    if (isKept) this.#begun.delete(key);
    return isKept;
  }

  /** `begin` for `.cu` files. What they include is read once for each file and its definitions. */
  beginFiles(files: readonly { readonly source: URL; readonly defines?: Defines }[]): void {
    if (!this.#beginBatch) return;
    const fresh = files.filter(({ source, defines }) => {
      const before = this.#begunFiles.size;
      return this.#begunFiles.add(JSON.stringify([source.href, defines])).size > before;
    });
    this.begin(fresh.map(({ source, defines }) => this.fileRequest(source, defines)));
  }

  /** Has kernels compiled aside, all at once; who asks for one of them waits for it. Does nothing for those that the cache has. */
  begin(requests: readonly CompileRequest[]): void {
    if (!this.#beginBatch || requests.length === 0) return;
    const missing = new Map(requests.map((request) => [this.keyOf(request), request]));
    for (const key of missing.keys()) if (this.#begun.has(key) || this.isCached(key)) missing.delete(key);
    if (missing.size === 0) return;
    const keys = [...missing.keys()];
    const batch = this.#beginBatch([...missing.values()], (index, image) => this.keep(keys[index]!, image));
    keys.forEach((key, index) => this.#begun.set(key, { batch, index }));
  }

  /**
   * Runs `fn`, in which each kernel that is still to be compiled throws a KernelPostponed, for `fn` to catch, and then begins
   * them all. Where nothing is compiled aside, none is postponed.
   */
  postpone<T>(fn: () => T): T {
    if (!this.#beginBatch) return fn();
    const postponed: CompileRequest[] = [];
    this.#postponed = postponed;
    try {
      return fn();
    } finally {
      this.#postponed = null;
      this.begin(postponed);
    }
  }

  /** Throws a KernelCompileError, or, while `postpone` runs, a KernelPostponed. */
  build(request: CompileRequest): Uint8Array {
    const key = this.keyOf(request);
    const cached = this.#cache.read(key);
    if (cached) {
      this.#begun.delete(key);
      return cached;
    }
    const begun = this.#begun.get(key);
    if (!begun && this.#postponed) {
      this.#postponed.push(request);
      throw new KernelPostponed(`Kernel ${request.name} is still to be compiled.`);
    }
    // What the batch has not may have been kept in the cache meanwhile.
    const made = begun && (begun.batch.take(begun.index) ?? this.#cache.read(key));
    this.#begun.delete(key);
    if (made) return made;
    const image = this.#loadCompiler().compile(request);
    this.#cache.write(key, image);
    return image;
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
}

/** What errors call the kernels of a file. */
export function kernelFileName(source: URL): string {
  return source.pathname.slice(source.pathname.lastIndexOf('/') + 1).replace(/\.cu$/, '');
}
