import type { Tensor } from '@roofline/tensor-core';
import type { Work } from '../group/work.ts';
import type { GradientBucket } from './gradient-buckets.ts';

/** What has happened in the backward pass that runs. */
export class BackwardPass {
  /** Of the buckets, in their order, as far as they are under way. */
  works: Work[] = [];
  readonly #arrived = new Map<GradientBucket, Set<Tensor>>();

  arrive(bucket: GradientBucket, parameter: Tensor): void {
    const arrived = this.#arrived.get(bucket);
    if (arrived) arrived.add(parameter);
    else this.#arrived.set(bucket, new Set([parameter]));
  }

  isComplete(bucket: GradientBucket): boolean {
    return this.#arrived.get(bucket)?.size === bucket.parameters.length;
  }

  reset(): void {
    this.works = [];
    this.#arrived.clear();
  }
}
