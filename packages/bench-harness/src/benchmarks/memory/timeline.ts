import { reservedOverTime, type Allocation, type MemoryRecord } from '@roofline/tensor-core';
import type { AllocationPlot } from '@roofline/reports';
import { describeStack, purposeOf } from './describe-allocation.ts';
import type { RecordedTimeline } from './result.ts';

/** Allocations that a timeline keeps: more would make reports too large, and cannot be told apart. */
const KEPT = 3000;

/** What was held before the step, shown as three allocations. */
export interface HeldBefore {
  readonly weightBytes: number;
  /** Of a compiled step, on a GPU. */
  readonly arenaBytes: number;
  readonly otherHeldBytes: number;
}

export const arenaLabel = 'arena of the compiled step';

/** The largest allocations of a recording, in the form in which records keep them. */
export function recordTimeline(record: MemoryRecord, held: HeldBefore): RecordedTimeline {
  const made = record.allocations.filter(({ startUs }) => startUs !== null);
  const bySize = [...made].sort((a, b) => b.bytes - a.bytes);
  const kept = new Set(bySize.slice(0, KEPT));
  const [labels, categories] = [new Interned(), new Interned()];
  const stacks = new Interned<string[]>((stack) => stack.join('\n'));
  const noStack = stacks.index([]);
  const whole = (label: string, bytes: number) =>
    [labels.index(label), categories.index('held before'), bytes, 0, null, noStack] as const;
  const entry = (allocation: Allocation) => {
    const { phase, bytes, startUs, endUs, stack } = allocation;
    return [
      labels.index(purposeOf(allocation)),
      categories.index(phase ?? 'other'),
      bytes,
      round(startUs!),
      endUs === null ? null : round(endUs),
      stacks.index(describeStack(stack)),
    ] as const;
  };
  const before = [
    whole('weights', held.weightBytes),
    whole(arenaLabel, held.arenaBytes),
    whole('optimizer state, tables and batch', held.otherHeldBytes),
  ].filter(([, , bytes]) => bytes > 0);
  return {
    allocations: [...before, ...made.filter((each) => kept.has(each)).map(entry)].map((tuple) => [...tuple]),
    labels: labels.values,
    categories: categories.values,
    stacks: stacks.values,
    reserved: reservedOverTime(record).map(([timeUs, bytes]) => [round(timeUs), bytes]),
    omitted: {
      count: Math.max(0, bySize.length - KEPT),
      largestBytes: bySize[KEPT]?.bytes ?? 0,
    },
  };
}

/** The plot of a recorded timeline. */
export function allocationsOf({
  labels,
  categories,
  stacks,
  allocations,
}: RecordedTimeline): AllocationPlot['allocations'] {
  return allocations.map(([label, category, bytes, startUs, endUs, stack]) => ({
    label: labels[label]!,
    category: categories[category]!,
    bytes,
    startUs,
    endUs,
    stack: stacks[stack]!,
  }));
}

function round(timeUs: number): number {
  return Math.round(timeUs * 10) / 10;
}

class Interned<T = string> {
  readonly values: T[] = [];
  readonly #indices = new Map<string, number>();
  readonly #key: (value: T) => string;

  constructor(key: (value: T) => string = String) {
    this.#key = key;
  }

  index(value: T): number {
    const key = this.#key(value);
    const known = this.#indices.get(key);
    if (known !== undefined) return known;
    this.#indices.set(key, this.values.length);
    return this.values.push(value) - 1;
  }
}
