import { checkText, wrongArgument } from '../base/check-value.ts';
import { DeviceError } from '../base/errors.ts';
import type { KernelSpec } from '../kernel.ts';

type Defines = NonNullable<KernelSpec['defines']>;

/** Gives the spec of a kernel for a set of definitions. */
export type KernelVariants = (defines: Defines) => KernelSpec;

/** The specs whose definitions begin alike: by the value of the next definition, and the one that ends here. */
interface Branch {
  readonly next: Map<string | number, Branch>;
  spec: KernelSpec | null;
}

/**
 * A kernel that is compiled once for each set of definitions. The returned function gives equal definitions the same
 * spec object, without a key to be put together at each call; it throws a DeviceError unless all of its calls list the
 * same names in one order. `source` is the URL of a `.cu` file, as `packageKernels` gives it, `parameters` as in `KernelSpec`.
 * Throws a RooflineError (code ARGUMENT) for what is none.
 */
export function kernelVariants(source: URL, name: string, parameters: string): KernelVariants {
  if (!(source instanceof URL)) throw wrongArgument('kernelVariants', 'the source', 'a URL', source);
  checkText('kernelVariants', 'the name', name);
  checkText('kernelVariants', 'the parameters', parameters);
  const root: Branch = { next: new Map(), spec: null };
  let names: readonly string[] | null = null;
  let last: KernelSpec | null = null;
  return (defines) => {
    if (last !== null && last.defines === defines) return last;
    names ??= Object.keys(defines);
    let branch = root;
    let i = 0;
    for (const macro in defines) {
      if (macro !== names[i++]) throw otherNames(name, names, defines);
      const value = defines[macro]!;
      let next = branch.next.get(value);
      if (!next) branch.next.set(value, (next = { next: new Map(), spec: null }));
      branch = next;
    }
    if (i !== names.length) throw otherNames(name, names, defines);
    last = branch.spec ??= { source, name, parameters, defines };
    return last;
  };
}

function otherNames(kernel: string, names: readonly string[], defines: Defines): DeviceError {
  return new DeviceError(
    `Kernel ${kernel}: all its variants define ${names.join(', ')}, in this order, not ${Object.keys(defines).join(', ')}.`,
  );
}
