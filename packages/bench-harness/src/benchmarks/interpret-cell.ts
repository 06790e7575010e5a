import { floorMs } from '../measuring/ceilings.ts';
import { summarize, type Summary } from '../measuring/statistics.ts';
import type { JsonObject } from '../records/json.ts';
import type { CellRecord } from '../records/record.ts';
import type { BenchmarkDefinition } from './definition.ts';

/** What the default table and report read of a definition. */
export type Told<C extends JsonObject, R extends JsonObject> = Pick<
  BenchmarkDefinition<never, C, never, R>,
  'name' | 'title' | 'describe' | 'cell' | 'result' | 'samplesMs' | 'cost' | 'columns'
>;

/** A record as it is reported by default. */
export interface InterpretedCell<C, R> {
  readonly name: string;
  readonly record: CellRecord;
  readonly cell: C;
  /** Null unless the status is `ok`. */
  readonly result: R | null;
  /** In the order in which they were taken; none where nothing was timed. */
  readonly samplesMs: readonly number[];
  /** Null where nothing was timed. */
  readonly time: Summary | null;
  /** The least time that the measured ceilings allow; null where they or the work are not known. */
  readonly floorMs: number | null;
}

export function interpretCell<C extends JsonObject, R extends JsonObject>(
  definition: Told<C, R>,
  record: CellRecord,
): InterpretedCell<C, R> {
  const cell = definition.cell.parse(record.parameters);
  const unmeasured = {
    name: definition.describe(cell),
    record,
    cell,
    result: null,
    samplesMs: [],
    time: null,
    floorMs: null,
  };
  if (record.status !== 'ok') return unmeasured;
  const result = definition.result.parse(record.result);
  const samples = definition.samplesMs(result, cell);
  const work = definition.cost?.(result, cell) ?? null;
  return {
    ...unmeasured,
    result,
    samplesMs: samples,
    time: samples.length > 0 ? summarize(samples) : null,
    floorMs: work && record.ceilings && floorMs(work.phases, record.ceilings, work.dtype),
  };
}
