import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  writeSync,
} from 'node:fs';
import { UsageError } from '../errors.ts';
import { cellRecord, type CellRecord } from './record.ts';

/**
 * Reads a JSON Lines file of records; an absent file holds none. A last line without its line break was torn
 * by a kill and is dropped: its cell counts as not measured. Any other unreadable line throws.
 */
export function readResultsFile(path: string): CellRecord[] {
  if (!existsSync(path)) return [];
  const complete = readFileSync(path, 'utf8').split('\n').slice(0, -1);
  return complete.flatMap((line, index) => (line === '' ? [] : [parseLine(line, path, index + 1)]));
}

function parseLine(line: string, path: string, lineNumber: number): CellRecord {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    throw new UsageError(`${path}:${lineNumber} is not JSON. Remove the line, or take another folder.`, {
      cause,
    });
  }
  const parsed = cellRecord.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new UsageError(
    `${path}:${lineNumber} is not a record that this version reads ` +
      `(${issue?.path.join('.')}: ${issue?.message}). Remove the line, or take another folder.`,
  );
}

/** Appends records, each one on disk before `append` returns. */
export class ResultsWriter {
  readonly #descriptor: number;

  /** Opens or creates the file, and cuts off a torn last line so that the next record starts on its own. */
  constructor(path: string) {
    const length = completeByteLength(path);
    this.#descriptor = openSync(path, 'a');
    if (fstatSync(this.#descriptor).size > length) ftruncateSync(this.#descriptor, length);
  }

  append(record: CellRecord): void {
    writeSync(this.#descriptor, `${JSON.stringify(record)}\n`);
    fsyncSync(this.#descriptor);
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}

function completeByteLength(path: string): number {
  return existsSync(path) ? readFileSync(path).lastIndexOf('\n') + 1 : 0;
}
