import { wrongArgument } from '../check-value.ts';
import { existsSync } from 'node:fs';
import { RooflineError } from '../errors.ts';

/** The folder of the package that a module belongs to, from its sources and from its build alike. */
export function packageFolder(moduleUrl: string): URL {
  let folder = new URL('.', moduleUrl);
  while (!existsSync(new URL('package.json', folder))) {
    const parent = new URL('..', folder);
    if (parent.href === folder.href) {
      throw new RooflineError('ARGUMENT', `packageKernels: no package.json lies above ${moduleUrl}.`);
    }
    folder = parent;
  }
  return folder;
}

/** Where the code of a module's package lies: `src`, next to which its tests lie, or all of the package once it is built. */
export function codeFolder(moduleUrl: string): URL {
  const folder = packageFolder(moduleUrl);
  return moduleUrl.endsWith('.ts') ? new URL('src/', folder) : folder;
}

/**
 * The CUDA sources of a package: call it with `import.meta.url`, and the result with the path of a file in the
 * package's folder `kernels`. What a source includes by quotes lies next to it, atop that folder or among the headers of
 * `@roofline/cuda`.
 */
export function packageKernels(moduleUrl: string): (file: string) => URL {
  if (typeof moduleUrl !== 'string' || !URL.canParse(moduleUrl))
    throw wrongArgument('packageKernels', "the module's address", 'import.meta.url', moduleUrl);
  const kernels = new URL('kernels/', packageFolder(moduleUrl));
  return (file) => new URL(file, kernels);
}
