import { type Tensor, keep } from '@roofline/tensor-core';

/** What the module that is being built has made so far; null outside of `building`. */
let made: Tensor[] | null = null;

/** Keeps a tensor of a module, which the module disposes; or `building`, where the module cannot be built. */
export function keepPart(part: Tensor): Tensor {
  made?.push(part);
  return keep(part);
}

/**
 * What `build` gives. Where it throws, in the middle of a model too large say, the parts that it made are freed: no
 * caller has them.
 */
export function building<T>(build: () => T): T {
  const before = made;
  const parts: Tensor[] = [];
  made = parts;
  try {
    return build();
  } catch (error) {
    for (const part of parts) part.dispose();
    throw error;
  } finally {
    made = before;
  }
}
