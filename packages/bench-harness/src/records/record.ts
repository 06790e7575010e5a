import { createHash } from 'node:crypto';
import { z } from 'zod';
import { anyObject, checkArgument } from '../check-argument.ts';
import { ceilingsSchema } from '../measuring/ceilings.ts';
import { otherWork } from './other-work.ts';
import { throttling } from './throttling.ts';
import { canonicalJson, type Json, type JsonObject } from './json.ts';
import { completeEnvironment, deviceIdentity, environmentSchema, type Environment } from './environment.ts';

/** Raised when a reader of older records would misunderstand newer ones. */
export const SCHEMA_VERSION = 1;

const jsonValue: z.ZodType<Json> = z.json();
const jsonObject: z.ZodType<JsonObject> = z.record(z.string(), jsonValue);

const cellStatus = z.enum(['ok', 'failed', 'timeout', 'out-of-memory']);
/** How the measurement of a cell ended. */
export type CellStatus = z.infer<typeof cellStatus>;

export const cellError = z.object({
  name: z.string(),
  code: z.string().optional(),
  message: z.string(),
  stack: z.string().optional(),
});
export type CellError = z.infer<typeof cellError>;

/** One line of `results.jsonl`: one cell, measured once or failed once. */
export const cellRecord = z.object({
  schemaVersion: z.literal(SCHEMA_VERSION),
  benchmark: z.string(),
  /** Hash of what was asked: equal keys are the same measurement. */
  key: z.string(),
  status: cellStatus,
  /** The cell's own parameters, those that are swept. */
  parameters: jsonObject,
  /** The parameters that all cells of a folder share. */
  settings: jsonObject,
  environment: environmentSchema,
  ceilings: ceilingsSchema.nullable(),
  startedAt: z.iso.datetime(),
  durationMs: z.number(),
  /** None in older records, and where the system does not say. */
  otherWork: otherWork.nullish(),
  /** None in older records. */
  throttling: throttling.nullish(),
  /** The cells that its process had measured before it; not there where it was the first. */
  cellsBefore: z.number().optional(),
  /** What the benchmark's `measure` returned, also where its schema refused that; null where there is nothing. */
  result: jsonObject.nullable(),
  /** Null when status is `ok`. */
  error: cellError.nullable(),
});
/** One line of `results.jsonl`: what was asked of a cell, where, and its outcome. */
export type CellRecord = z.infer<typeof cellRecord>;

/** A record in memory. What its benchmark put into it is its own affair, and may be large. */
export const recordSchema = cellRecord.extend({
  environment: completeEnvironment,
  parameters: anyObject,
  settings: anyObject,
  result: anyObject.nullable(),
});
const recordList = z.array(recordSchema);

/** Throws an ArgumentError for what are no records, or none at all. */
export function checkRecords(owner: string, what: string, records: readonly CellRecord[]): void {
  checkArgument(owner, what, records, recordList.min(1, 'there are none'));
}

/** What all records of one file have in common. */
export interface SweepIdentity {
  readonly benchmark: string;
  readonly device: string;
  readonly variables: Readonly<Record<string, string>>;
  readonly settings: JsonObject;
}

export function sweepIdentity(
  benchmark: string,
  settings: JsonObject,
  environment: Environment,
): SweepIdentity {
  const { variables } = environment;
  return { benchmark, device: deviceIdentity(environment), variables, settings };
}

/** The identity of the sweep that wrote `record`. */
export function identityOf(record: CellRecord): SweepIdentity {
  return sweepIdentity(record.benchmark, record.settings, record.environment);
}

/** Names a cell by what was asked and of which device; commits and versions do not enter. */
export function cellKey(identity: SweepIdentity, parameters: JsonObject): string {
  const text = canonicalJson({ ...identity, parameters });
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/** For each cell the record that counts, in the order of first appearance: later records replace earlier. */
export function latestRecords(records: readonly CellRecord[]): CellRecord[] {
  return [...new Map(records.map((record) => [record.key, record])).values()];
}
