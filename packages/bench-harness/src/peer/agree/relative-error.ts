/** ‖ours − theirs‖ / ‖theirs‖ with Euclidean norms in float64; Infinity where only theirs is all zeros. */
export function relativeError(ours: ArrayLike<number>, theirs: ArrayLike<number>): number {
  if (ours.length !== theirs.length) {
    throw new RangeError(`Cannot compare ${ours.length} elements with ${theirs.length}.`);
  }
  let difference = 0;
  let norm = 0;
  for (let index = 0; index < ours.length; index++) {
    difference += (ours[index]! - theirs[index]!) ** 2;
    norm += theirs[index]! ** 2;
  }
  return difference === 0 ? 0 : Math.sqrt(difference / norm);
}
