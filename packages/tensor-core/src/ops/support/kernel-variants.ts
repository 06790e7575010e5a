import type { KernelSpec } from '../../op/cuda-lowering.ts';
import { kernelSource } from '../../package-root.ts';

type Defines = NonNullable<KernelSpec['defines']>;

/** Gives the spec of a kernel for a set of definitions. */
export type KernelVariants = (defines: Defines) => KernelSpec;

/**
 * A kernel that is compiled once for each set of definitions. The returned function gives equal definitions,
 * listed in one order, the same spec object. `parameters` as in `KernelSpec`.
 */
export function kernelVariants(file: string, name: string, parameters: string): KernelVariants {
  const source = kernelSource(file);
  const specs = new Map<string, KernelSpec>();
  return (defines) => {
    const key = Object.values(defines).join();
    let spec = specs.get(key);
    if (!spec) specs.set(key, (spec = { source, name, parameters, defines }));
    return spec;
  };
}
