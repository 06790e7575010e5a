import { LibraryNotFoundError, RooflineError } from '@roofline/tensor-core';
import { type NativeFunctions, declareFunctions, ffi, keepLibrary } from '@roofline/cuda/host';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { kinds } from './native-codes.ts';

// Addresses and handles are numbers; see native/gloo_shim.cc.
const prototypes = {
  lastError: 'int roofline_gloo_last_error(uintptr_t text, int capacity)',
  kinds: 'int roofline_gloo_kinds()',
  open: 'uintptr_t roofline_gloo_open(int rank, int size, const char *host, const char *interfaceName, int timeoutMs)',
  addresses: 'int roofline_gloo_addresses(uintptr_t group, uintptr_t out, int capacity)',
  notified: 'int roofline_gloo_notified(uintptr_t group)',
  start:
    'int64_t roofline_gloo_start(uintptr_t group, int kind, int dtype, int reduction, int root, uintptr_t in, ' +
    'uintptr_t out, int64_t count, const uint8_t *descriptor, int descriptorBytes)',
  wait: 'int roofline_gloo_wait(uintptr_t group, int64_t ticket)',
  finish:
    'int roofline_gloo_finish(uintptr_t group, int64_t ticket, uintptr_t ranNs, uintptr_t text, int capacity)',
  close: 'void roofline_gloo_close(uintptr_t group)',
} as const;

export type GlooLibrary = NativeFunctions<typeof prototypes>;

let loaded: { readonly handle: unknown; readonly functions: GlooLibrary } | null = null;

/** Where `native/build.mjs` puts the shim. */
export function shimPath(): string {
  return fileURLToPath(new URL('native/build/libroofline_gloo.so', packageFolder()));
}

/** How to get Gloo. The command runs this Node.js, since in a bundle there may be no other, and can be copied. */
export function glooRemedy(): string {
  const build = [process.execPath, fileURLToPath(new URL('native/build.mjs', packageFolder()))];
  const command = build.map((path) => (/\s/.test(path) ? `'${path}'` : path)).join(' ');
  return `Install Gloo and a compiler (Debian, Ubuntu: \`apt-get install libgloo-dev g++\`), then run \`${command}\`.`;
}

/** Loads the shim and with it Gloo. Throws a LibraryNotFoundError that says how to get them. */
export function glooLibrary(): GlooLibrary {
  if (loaded) return loaded.functions;
  const path = shimPath();
  const remedy = glooRemedy();
  if (!existsSync(path)) throw new LibraryNotFoundError("gloo's shim", [path], remedy);
  try {
    const handle = ffi().load(path);
    keepLibrary(path);
    const functions = declareFunctions(handle, prototypes, missingFunction);
    if (functions.kinds() !== Object.keys(kinds).length) throw missingFunction('roofline_gloo_kinds');
    // A collected handle would unload the library under its functions.
    loaded = { handle, functions };
    return functions;
  } catch (cause) {
    throw new LibraryNotFoundError('libgloo', [path], remedy, { cause });
  }
}

function missingFunction(name: string): RooflineError {
  return new RooflineError('GLOO', `${name}: the shim is of another version; run native/build.mjs again.`);
}

/** From the sources and from the build alike. */
function packageFolder(): URL {
  let folder = new URL('.', import.meta.url);
  while (!existsSync(new URL('native/gloo_shim.cc', folder))) {
    const parent = new URL('..', folder);
    if (parent.href === folder.href)
      throw new RooflineError(
        'GLOO',
        'gloo: the package @roofline/collectives has lost its folder native/. Install it anew.',
      );
    folder = parent;
  }
  return folder;
}
