import { existsSync, readFileSync } from 'node:fs';
import { kernelSource } from '../../../package-root.ts';
import { DeviceError } from '../../../errors.ts';
import { KernelCache, cacheFolder, cacheKey } from './kernel-cache.ts';
import { type KernelCompiler, loadNvrtc } from './nvrtc.ts';

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

/**
 * The files that `source` includes by quotes, and those that they include, by name. They lie beside the source
 * or among this package's kernels. Throws a DeviceError for one that is missing.
 */
export function collectHeaders(source: string, folder: URL): Map<string, string> {
  const headers = new Map<string, string>();
  const pending = [source];
  for (let text = pending.pop(); text !== undefined; text = pending.pop()) {
    for (const [, file] of text.matchAll(/^\s*#\s*include\s*"([^"]+)"/gm)) {
      if (headers.has(file!)) continue;
      const url = [new URL(file!, folder), kernelSource(file!)].find((candidate) => existsSync(candidate));
      if (!url) throw new DeviceError(`#include "${file}": there is no such file in ${folder.pathname}.`);
      const included = readText(url);
      headers.set(file!, included);
      pending.push(included);
    }
  }
  return headers;
}

/** Compiles kernels for one architecture, or takes them from the disk cache. */
export class KernelBuilder {
  readonly architecture: string;
  readonly #cache: KernelCache;
  readonly #loadCompiler: () => KernelCompiler;

  constructor(architecture: string, loadCompiler = loadNvrtc, cache = new KernelCache(cacheFolder())) {
    this.architecture = architecture;
    this.#loadCompiler = loadCompiler;
    this.#cache = cache;
  }

  /** The machine code of a `.cu` file. Throws a KernelCompileError. */
  buildFile(source: URL, defines: Defines = {}): Uint8Array {
    const name = source.pathname.slice(source.pathname.lastIndexOf('/') + 1).replace(/\.cu$/, '');
    return this.#build(name, readText(source), new URL('.', source), defines);
  }

  /** The machine code of a generated source. Throws a KernelCompileError. */
  buildText(name: string, source: string): Uint8Array {
    return this.#build(name, source, kernelSource(''), {});
  }

  #build(name: string, source: string, folder: URL, defines: Defines): Uint8Array {
    const compiler = this.#loadCompiler();
    const headers = collectHeaders(source, folder);
    const options = Object.entries(defines).map(([macro, value]) => `--define-macro=${macro}=${value}`);
    const key = cacheKey([compiler.version, this.architecture, ...options, source, ...[...headers].flat()]);
    const cached = this.#cache.read(key);
    if (cached) return cached;
    const image = compiler.compile({ name, source, headers, architecture: this.architecture, options });
    this.#cache.write(key, image);
    return image;
  }
}
