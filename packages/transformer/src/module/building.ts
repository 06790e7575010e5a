import { type Tensor, keep, noGrad } from '@roofline/tensor-core';
import { refuseAsync, refusePromise } from '@roofline/cuda/host';

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

let isDeferred = false;

/**
 * What `build` gives, mostly a model, whose weights take no memory until they are used: each is made then, with the values that it
 * would have had. So a model that is larger than a device can be built, and split by `fullyShard` of @roofline/collectives, which
 * uses one block after the other.
 *
 *     const model = deferWeights(() => new TransformerLM(config, { device, seed: 0 }));
 *
 * Throws a RooflineError for an async function, and what `build` throws.
 */
export function deferWeights<T>(build: () => T): T {
  refuseAsync('deferWeights', build);
  const before = isDeferred;
  isDeferred = true;
  try {
    return refusePromise('deferWeights', build());
  } finally {
    isDeferred = before;
  }
}

/** Whether weights are made when they are used, and not before. */
export function isDeferring(): boolean {
  return isDeferred;
}

/** Keeps a weight without its memory until it is used, which `make` then gives. */
export function keepDeferred(weight: Tensor, make: () => Tensor): Tensor {
  const { storage } = keepPart(weight);
  storage.letGo(() => {
    const made = noGrad(() => keep(make()));
    fillDeferred({ storage }, made);
  });
  return weight;
}

/** Moves the memory of `values`, which are kept, have as many bytes and are not used again, into a weight that has none. */
export function fillDeferred({ storage }: Pick<Tensor, 'storage'>, values: Tensor): void {
  storage.moveIn(values.storage);
  values.dispose();
}
