import type { KernelSpec } from '@roofline/tensor-core';

const announced = new Map<KernelSpec, KernelSpec>();

/** The same spec with its dynamic shared memory, which follows from its definitions. */
export function announcing(variant: KernelSpec, dynamicSharedBytes: number): KernelSpec {
  let spec = announced.get(variant);
  if (!spec) announced.set(variant, (spec = { ...variant, dynamicSharedBytes }));
  return spec;
}
