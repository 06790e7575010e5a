import type { DType } from '../../base/dtype.ts';
import type { Layout } from '../../base/shape.ts';
import { extentOf } from './extent.ts';
import type { Storage } from './storage.ts';

/** Elements of a storage, such as a tensor's. */
export interface StoredElements extends Layout {
  readonly storage: Storage;
  readonly dtype: DType;
}

/** Whether two tensors have an element in common; also true if that takes too long to find out. */
export function shareMemory(a: StoredElements, b: StoredElements): boolean {
  if (a.storage !== b.storage) return false;
  const [one, other] = [extentOf(a), extentOf(b)];
  if (one.end <= other.start || other.end <= one.start) return false;
  return a.dtype !== b.dtype || shareElements(a, b) !== 'no';
}

/** Steps of one length that may be taken 0 to `most` times. */
interface Step {
  readonly length: number;
  readonly most: number;
}

/** Positions tried before the search gives up. Views of tensors take a few; unordered strides may take all. */
const budget = 100_000;

/**
 * Whether two layouts of one storage, with strides of zero or more, have an element in common. Exact, unless the search would
 * take too long: i·s + offset = j·t + offset' over all indices is a bounded Diophantine equation, which is hard in general,
 * but easy if strides are nested, as those of views are.
 */
export function shareElements(a: Layout, b: Layout): 'yes' | 'no' | 'too hard' {
  if (a.shape.includes(0) || b.shape.includes(0)) return 'no';
  // j counted from the end, so that all terms are added: Σ i·s + Σ j'·t = Σ (length - 1)·t + offset' - offset.
  const steps = mergeSteps([...stepsOf(a), ...stepsOf(b)]);
  const distance = b.offset - a.offset + stepsOf(b).reduce((sum, { length, most }) => sum + length * most, 0);
  return new StepSearch(steps).reaches(distance);
}

function stepsOf({ shape, strides }: Layout): Step[] {
  return shape
    .map((length, i) => ({ length: strides[i]!, most: length - 1 }))
    .filter(({ length, most }) => length > 0 && most > 0);
}

/** Sorted, the longest first, with steps of equal length merged. */
function mergeSteps(steps: readonly Step[]): Step[] {
  const mostByLength = new Map<number, number>();
  for (const { length, most } of steps) mostByLength.set(length, (mostByLength.get(length) ?? 0) + most);
  return [...mostByLength].map(([length, most]) => ({ length, most })).sort((a, b) => b.length - a.length);
}

/**
 * Finds how often to take each step so that the sum is a distance: the longest first, and only what the shorter ones can still
 * reach.
 */
class StepSearch {
  readonly #steps: readonly Step[];
  /** For the steps from each one on: how far they reach, and what divides all sums of them. */
  readonly #farthest: number[];
  readonly #divisor: number[];
  #tried = 0;

  constructor(steps: readonly Step[]) {
    this.#steps = steps;
    this.#farthest = [0];
    this.#divisor = [0];
    for (const { length, most } of steps.toReversed()) {
      this.#farthest.unshift(this.#farthest[0]! + length * most);
      this.#divisor.unshift(greatestCommonDivisor(length, this.#divisor[0]!));
    }
  }

  reaches(distance: number): 'yes' | 'no' | 'too hard' {
    const found = this.#search(0, distance);
    return found ? 'yes' : this.#tried > budget ? 'too hard' : 'no';
  }

  #search(from: number, distance: number): boolean {
    if (distance < 0 || distance > this.#farthest[from]! || ++this.#tried > budget) return false;
    if (from === this.#steps.length) return distance === 0;
    if (distance % this.#divisor[from]! !== 0) return false;
    const { length, most } = this.#steps[from]!;
    const least = Math.max(0, Math.ceil((distance - this.#farthest[from + 1]!) / length));
    for (let count = Math.min(most, Math.floor(distance / length)); count >= least; count--) {
      if (this.#search(from + 1, distance - count * length)) return true;
      if (this.#tried > budget) return false;
    }
    return false;
  }
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
