import type { z } from 'zod';
import { floorMs, type BenchmarkDType, type PhaseWork } from '../measuring/ceilings.ts';
import { summarize, type Summary } from '../measuring/statistics.ts';
import { canonicalJson, type JsonObject } from '../records/json.ts';
import type { CellRecord } from '../records/record.ts';

/** The work of one step of a cell, which the measured ceilings turn into the least time it could take. */
export interface StepCost {
  /** One after the other; their floors add up. */
  readonly phases: readonly PhaseWork[];
  /** Of the products; work that only moves bytes has none. */
  readonly dtype?: BenchmarkDType;
}

/** What is read of a benchmark to interpret its records. */
export interface Readable<Cell extends JsonObject, Result extends JsonObject> {
  readonly cell: z.ZodType<Cell>;
  readonly result: z.ZodType<Result>;
  describe(cell: Cell): string;
  samplesMs(result: Result, cell: Cell): readonly number[];
  peakBytes?(result: Result, cell: Cell): number | null;
  cost?(result: Result, cell: Cell): StepCost | null;
}

/** A record, and what it says. */
export interface Measurement<Cell extends JsonObject, Result> {
  /** As the benchmark describes the cell. */
  readonly name: string;
  readonly record: CellRecord;
  readonly cell: Cell;
  /** Null unless the status is `ok`. */
  readonly result: Result | null;
  /** In the order in which they were taken; none where nothing was timed. */
  readonly samplesMs: readonly number[];
  /** Null where nothing was timed. */
  readonly time: Summary | null;
  /** The least time that the measured ceilings allow; null where they or the work are not known. */
  readonly floorMs: number | null;
  /** Floor over median: 1 is the roof. Null where there is no floor, or no time. */
  readonly roofShare: number | null;
  readonly peakBytes: number | null;
}

/** One that has a result. */
export type Measured<Cell extends JsonObject, Result> = Measurement<Cell, Result> & {
  readonly result: Result;
};

export function interpret<Cell extends JsonObject, Result extends JsonObject>(
  benchmark: Readable<Cell, Result>,
  record: CellRecord,
): Measurement<Cell, Result> {
  const cell = benchmark.cell.parse(record.parameters);
  const unmeasured = {
    ...{ name: benchmark.describe(cell), record, cell },
    ...{ result: null, samplesMs: [], time: null, floorMs: null, roofShare: null, peakBytes: null },
  };
  if (record.status !== 'ok') return unmeasured;
  const result = benchmark.result.parse(record.result);
  const samplesMs = benchmark.samplesMs(result, cell);
  const time = samplesMs.length > 0 ? summarize(samplesMs) : null;
  const work = benchmark.cost?.(result, cell) ?? null;
  const floor = work && record.ceilings && floorMs(work.phases, record.ceilings, work.dtype);
  const roofShare = floor === null || time === null ? null : floor / time.median;
  const peakBytes = benchmark.peakBytes?.(result, cell) ?? null;
  return { ...unmeasured, result, samplesMs, time, floorMs: floor, roofShare, peakBytes };
}

export function measuredOf<Cell extends JsonObject, Result>(
  measurements: readonly Measurement<Cell, Result>[],
): Measured<Cell, Result>[] {
  return measurements.filter((each): each is Measured<Cell, Result> => each.result !== null);
}

/** A measured cell, and the measured one that it is compared with. */
export interface Pair<M> {
  readonly cell: M;
  readonly beside: M;
}

/** Each measured cell next to the one that differs in nothing but `key`, which has the value `reference` there. */
export function pairsBy<Cell extends JsonObject, Result>(
  measurements: readonly Measurement<Cell, Result>[],
  key: keyof Cell & string,
  reference: Cell[typeof key],
): Pair<Measured<Cell, Result>>[] {
  const measured = measuredOf(measurements);
  const work = ({ cell }: Measured<Cell, Result>) => canonicalJson({ ...cell, [key]: reference });
  const references = new Map(
    measured.filter(({ cell }) => cell[key] === reference).map((each) => [work(each), each]),
  );
  return measured.flatMap((each) => {
    const beside = each.cell[key] === reference ? undefined : references.get(work(each));
    return beside ? [{ cell: each, beside }] : [];
  });
}

/** What follows from a measurement, worked out once for all columns, plots and findings that show it. */
export function workedOut<Item extends object, Value>(work: (item: Item) => Value): (item: Item) => Value {
  const known = new WeakMap<Item, { readonly value: Value }>();
  return (item) => {
    const found = known.get(item) ?? { value: work(item) };
    known.set(item, found);
    return found.value;
  };
}
