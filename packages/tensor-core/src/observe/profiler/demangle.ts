import type { LoadedLibrary } from '@roofline/cuda';
import { ffi } from '@roofline/cuda/host';

type Demangler = (mangled: string) => string | null;

let demangler: Demangler | null = null;
// Kept, because garbage-collecting the handle unloads the library while its functions are in use.
let library: LoadedLibrary['handle'] | null = null;

/**
 * The C++ name of a symbol, such as `void f<int>(int)` for `_Z1fIiEvT_`, by `__cxa_demangle` of the Itanium C++ ABI. Names
 * that are not mangled stay as they are, and so do all where the system has no libstdc++.
 */
export function demangle(symbol: string): string {
  if (!symbol.startsWith('_Z')) return symbol;
  demangler ??= loadDemangler();
  return demangler(symbol) ?? symbol;
}

function loadDemangler(): Demangler {
  try {
    library = ffi().load('libstdc++.so.6');
  } catch {
    return () => null;
  }
  // The result comes from malloc: koffi frees it once it has been read.
  ffi().disposable('RooflineDemangled', 'string');
  const call = library.func(
    'RooflineDemangled __cxa_demangle(const char *symbol, uintptr_t buffer, uintptr_t length, uintptr_t status)',
  );
  return (symbol) => call(symbol, 0, 0, 0) as string | null;
}
