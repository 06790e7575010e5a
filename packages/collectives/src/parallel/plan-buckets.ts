import { type Tensor, byteSize } from '@roofline/tensor-core';

export interface BucketSizes {
  /** Of the first bucket: small, so that its reduction starts soon after the backward pass. */
  readonly firstBytes: number;
  /** Of the others. */
  readonly bytes: number;
}

/** A bucket under way, of tensors that can share one flat buffer. */
interface OpenBucket {
  readonly parameters: Tensor[];
  readonly firstIndex: number;
  bytes: number;
}

/**
 * Puts parameters into buckets for their gradients, in the order given: one is full once it has reached its size, so
 * that a large gradient stays whole. A bucket has one dtype and one device.
 */
export function planBuckets(
  parameters: readonly Tensor[],
  { firstBytes, bytes }: BucketSizes,
): (readonly Tensor[])[] {
  const open = new Map<string, OpenBucket>();
  const full: OpenBucket[] = [];
  parameters.forEach((parameter, index) => {
    const { dtype, device } = parameter;
    const kind = `${dtype} ${device.label}`;
    const bucket = open.get(kind) ?? { parameters: [], firstIndex: index, bytes: 0 };
    open.set(kind, bucket);
    bucket.parameters.push(parameter);
    bucket.bytes += parameter.size * byteSize(dtype);
    if (bucket.bytes < (full.length === 0 ? firstBytes : bytes)) return;
    full.push(bucket);
    open.delete(kind);
  });
  return [...full, ...open.values()]
    .sort((a, b) => a.firstIndex - b.firstIndex)
    .map((bucket) => bucket.parameters);
}
