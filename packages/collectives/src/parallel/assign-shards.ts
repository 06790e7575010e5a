/**
 * Which rank each part belongs to, so that the ranks' sums are about even: the largest first, each to the rank that has
 * least so far (Graham 1969: no rank has more than the even share and one part).
 */
export function assignShards(sizes: readonly number[], ranks: number): number[] {
  const owners = new Array<number>(sizes.length).fill(0);
  const loads = new Array<number>(ranks).fill(0);
  const largestFirst = sizes.map((_, i) => i).sort((a, b) => sizes[b]! - sizes[a]!);
  for (const part of largestFirst) {
    const least = loads.indexOf(Math.min(...loads));
    owners[part] = least;
    loads[least]! += sizes[part]!;
  }
  return owners;
}

/**
 * In which bucket each part goes: those of one rank, in their order, fill buckets of `bucketBytes`; the last one of a bucket may exceed
 * it. A part of several buckets' bytes leaves its rank out of the next ones, so that after each all ranks have given about as much.
 * Those that this leaves without a part of any rank are not counted.
 */
export function assignBuckets(
  sizes: readonly number[],
  owners: readonly number[],
  bucketBytes: number,
): number[] {
  const sums = new Map<number, number>();
  const buckets = sizes.map((bytes, i) => {
    const before = sums.get(owners[i]!) ?? 0;
    sums.set(owners[i]!, before + bytes);
    return Math.floor(before / bucketBytes);
  });
  const inOrder = [...new Set(buckets)].toSorted((a, b) => a - b);
  const numbers = new Map(inOrder.map((bucket, number) => [bucket, number]));
  return buckets.map((bucket) => numbers.get(bucket)!);
}
