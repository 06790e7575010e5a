import type { CellRecord } from './record.ts';

const places = new WeakMap<CellRecord, string>();

/** Where a record was read, such as `results/a/results.jsonl:3`; null for one that was not read from a file. */
export function placeOf(record: CellRecord): string | null {
  return places.get(record) ?? null;
}

/** The record, which was read at `place`. */
export function placed(record: CellRecord, place: string): CellRecord {
  places.set(record, place);
  return record;
}
