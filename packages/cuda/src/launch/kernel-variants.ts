import { checkText, wrongArgument } from '../base/check-value.ts';
import { DeviceError } from '../base/errors.ts';
import type { KernelSpec } from '../kernel.ts';
import {
  type KernelArguments,
  type KernelParameters,
  lettersOf,
  listArguments,
} from './kernel-parameters.ts';

type Defines = NonNullable<KernelSpec['defines']>;

/** A kernel that is compiled once for each set of definitions. */
export interface KernelVariants<P extends KernelParameters = KernelParameters> {
  /** The spec of the variant with these definitions. */
  (defines: Defines): KernelSpec;
  /** The arguments of a launch: one for each parameter, by its name, in their order. Throws a DeviceError for others. */
  byName(values: KernelArguments<P>): (number | Uint8Array)[];
}

/** The specs whose definitions begin alike: by the value of the next definition, and the one that ends here. */
interface Branch {
  readonly next: Map<string | number, Branch>;
  spec: KernelSpec | null;
}

/**
 * A kernel that is compiled once for each set of definitions. Called with definitions, it returns the same spec object for
 * equal ones, without making a key at each call; it throws a DeviceError unless all calls list the same names in one order.
 * `source` is the URL of a `.cu` file, as `packageKernels` gives it; `parameters` are those of the kernel's declaration, by name.
 * `dynamicSharedBytes` is what launches may ask for, as in a KernelSpec; the same for all variants. Throws a RooflineError (code
 * ARGUMENT) for what is none.
 *
 * @example
 * ```ts
 * import { kernelVariants, packageKernels } from '@roofline/cuda';
 *
 * const source = packageKernels(import.meta.url)('flip.cu');
 * const kernel = kernelVariants(source, 'flip', { x: 'pointer', y: 'pointer', size: 'int64' });
 * const spec = kernel({ ELEMENT: 'float' });
 * console.log(spec.parameters, kernel.byName({ x: 4096, y: 8192, size: 7 })); // ppl [ 4096, 8192, 7 ]
 * ```
 */
export function kernelVariants<const P extends KernelParameters>(
  source: URL,
  name: string,
  parameters: P,
  dynamicSharedBytes?: number,
): KernelVariants<P> {
  if (!(source instanceof URL)) throw wrongArgument('kernelVariants', 'the source', 'a URL', source);
  checkText('kernelVariants', 'the name', name);
  const types = lettersOf('kernelVariants', parameters);
  const parameterNames = Object.keys(parameters);
  const announced = dynamicSharedBytes === undefined ? {} : { dynamicSharedBytes };
  const root: Branch = { next: new Map(), spec: null };
  let names: readonly string[] | null = null;
  let last: KernelSpec | null = null;
  const specOf = (defines: Defines) => {
    if (last !== null && last.defines === defines) return last;
    names ??= Object.keys(defines);
    let branch = root;
    let i = 0;
    for (const macro in defines) {
      if (macro !== names[i++]) throw otherDefines(name, names, defines);
      const value = defines[macro]!;
      let next = branch.next.get(value);
      if (!next) branch.next.set(value, (next = { next: new Map(), spec: null }));
      branch = next;
    }
    if (i !== names.length) throw otherDefines(name, names, defines);
    last = branch.spec ??= { source, name, parameters: types, defines, ...announced };
    return last;
  };
  const byName = (values: KernelArguments<P>) => listArguments(name, parameterNames, values);
  return Object.assign(specOf, { byName });
}

function otherDefines(kernel: string, names: readonly string[], defines: Defines): DeviceError {
  return new DeviceError(
    `Kernel ${kernel}: all its variants define ${names.join(', ')}, in this order, not ${Object.keys(defines).join(', ')}.`,
  );
}
