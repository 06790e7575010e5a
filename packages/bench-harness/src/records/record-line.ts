import { orUsageError } from '../attempt.ts';
import { UsageError } from '../errors.ts';
import { placed } from './record-places.ts';
import { cellRecord, SCHEMA_VERSION, type CellRecord } from './record.ts';

/**
 * The record of a line, which `place` names. Throws a UsageError for a line that is not a record; nothing that the line
 * holds need be given up.
 */
export function parseRecordLine(line: string, place: string): CellRecord {
  const value: unknown = orUsageError(
    () => JSON.parse(line),
    () => `${place} is not JSON, as if it had been cut off or overwritten. ${remedy}`,
  );
  const parsed = cellRecord.safeParse(value);
  if (parsed.success) return placed(parsed.data, place);
  const version = (value as { schemaVersion?: unknown } | null)?.schemaVersion;
  if (typeof version === 'number' && version > SCHEMA_VERSION) {
    throw new UsageError(
      `${place} was written by a newer Roofline: its records have version ${version}, and this one ` +
        `(${SCHEMA_VERSION}) cannot read them. Update @roofline/bench-harness, or take another folder.`,
    );
  }
  const [issue] = parsed.error.issues;
  const what = issue?.path.length ? `${issue.path.join('.')}: ${issue.message}` : issue?.message;
  throw new UsageError(`${place} is not a record that this version reads (${what}). ${remedy}`);
}

const remedy =
  'Mend the line, or move it to a file of its own, which has its cell measured again; or take another folder.';
