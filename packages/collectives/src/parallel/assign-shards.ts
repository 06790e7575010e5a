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
