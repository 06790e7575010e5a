import { checkText } from '../check-value.ts';
import { ffi } from './ffi.ts';

// Of dlfcn.h, with glibc and musl.
const resolveNow = 0x2;
const neverUnload = 0x1000;

let open: ((path: string, flags: number) => number) | null = null;

/**
 * Keeps a loaded library in memory until the process is gone. When Node.js ends, koffi unloads what it has loaded; threads
 * that the library has started would then run into memory that is not there. On Linux; elsewhere libraries with threads of
 * their own are not loaded. Throws a RooflineError for a path that is no text; one that is not loaded changes nothing.
 */
export function keepLibrary(path: string): void {
  checkText('keepLibrary', 'the path', path);
  if (process.platform !== 'linux') return;
  open ??= ffi().load(null).func('uintptr_t dlopen(const char *path, int flags)') as NonNullable<typeof open>;
  open(path, resolveNow | neverUnload);
}
