import { checkFunction, checkObject } from '../check-value.ts';
import { createRequire } from 'node:module';
import type koffi from 'koffi';

/** A C function as koffi gives it. Pointers and handles are numbers: addresses lie below 2^53. */
export type NativeFunction = (...arguments_: readonly NativeArgument[]) => number;
/** What a function of a native library takes. */
export type NativeArgument = number | string | Uint8Array | readonly (string | null)[] | null;

/** C prototypes by the name that the program uses. */
export type Prototypes = Readonly<Record<string, string>>;
/** The prototypes of a library's functions in C, by their names. */
export type NativeFunctions<P extends Prototypes> = { readonly [Name in keyof P]: NativeFunction };

let loaded: typeof koffi | null = null;

/** koffi, loaded at first use: importing this package must cost nothing and never fail. */
export function ffi(): typeof koffi {
  loaded ??= createRequire(import.meta.url)('koffi') as typeof koffi;
  return loaded;
}

/**
 * Declares functions of a loaded library. One that an old library lacks throws when it is called, not here:
 * `describe` makes that error.
 */
export function declareFunctions<P extends Prototypes>(
  library: ReturnType<typeof koffi.load>,
  prototypes: P,
  describe: (name: string) => Error,
): NativeFunctions<P> {
  checkObject('declareFunctions', 'the library', library);
  checkObject('declareFunctions', 'the prototypes', prototypes);
  checkFunction('declareFunctions', 'describe', describe);
  const functions: Record<string, NativeFunction> = {};
  for (const [name, prototype] of Object.entries(prototypes)) {
    try {
      functions[name] = library.func(prototype);
    } catch {
      functions[name] = () => {
        throw describe(name);
      };
    }
  }
  return functions as NativeFunctions<P>;
}
