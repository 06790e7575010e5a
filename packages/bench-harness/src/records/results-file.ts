import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  statSync,
  writeSync,
} from 'node:fs';
import { ifPossible, orUsageError } from '../attempt.ts';
import { ResultsFileError, UsageError } from '../errors.ts';
import { SCHEMA_VERSION, type CellRecord, cellRecord } from './record.ts';
import { placed } from './record-places.ts';

/** How every line begins; `append` writes a record's members in this order. */
const LINE_HEAD = `{"schemaVersion":${SCHEMA_VERSION},"benchmark":"`;

/** What editors of some systems put before the text. */
const BYTE_ORDER_MARK = /^\uFEFF/;

/**
 * Reads a JSON Lines file of records; an absent file holds none. A record that a kill tore at the end is dropped: its
 * cell counts as not measured, which is reported to `onTorn`. Throws a UsageError for any other line that is not a
 * record, for what is not a file, and for one that cannot be read.
 */
export function readResultsFile(path: string, onTorn?: (message: string) => void): CellRecord[] {
  const { records, tornLine } = readContent(path);
  if (tornLine !== null) {
    onTorn?.(
      `${path}:${tornLine} is the beginning of a record whose writing was interrupted: its cell counts as not measured. ` +
        'The same command with the same --out measures it again.',
    );
  }
  return records;
}

interface Content {
  readonly records: CellRecord[];
  /** What precedes a torn record. */
  readonly completeBytes: number;
  /** Whether the last record has its line break. */
  readonly isTerminated: boolean;
  /** Its number; null where no record is torn. */
  readonly tornLine: number | null;
}

function readContent(path: string): Content {
  if (!existsSync(path)) return { records: [], completeBytes: 0, isTerminated: true, tornLine: null };
  if (!statSync(path).isFile()) {
    throw new UsageError(`${path} is no file. Remove it, or take another folder.`);
  }
  const bytes = orUsageError(() => readFileSync(path), cannotRead(path));
  const lines = bytes.toString('utf8').replace(BYTE_ORDER_MARK, '').split('\n');
  const tail = lines.pop()!;
  const records = lines.flatMap((line, index) =>
    line === '' ? [] : [parseRecordLine(line, `${path}:${index + 1}`)],
  );
  if (tail === '') return { records, completeBytes: bytes.length, isTerminated: true, tornLine: null };
  if (isTorn(tail, records.length > 0)) {
    const completeBytes = bytes.lastIndexOf('\n') + 1;
    return { records, completeBytes, isTerminated: true, tornLine: lines.length + 1 };
  }
  records.push(parseRecordLine(tail, `${path}:${lines.length + 1}`));
  return { records, completeBytes: bytes.length, isTerminated: false, tornLine: null };
}

export const cannotRead = (path: string) => (code: string | undefined) =>
  `Cannot read ${path} (${code}). Make it readable, or take another folder.`;

/**
 * Whether the text at a file's end is the beginning of a record. After records a few letters of one are enough; a file
 * that holds nothing else might be anything. What a loss of power leaves after them may be zeros.
 */
function isTorn(tail: string, isBehindRecords: boolean): boolean {
  const isBeginning =
    tail.startsWith(LINE_HEAD) || (isBehindRecords && (LINE_HEAD.startsWith(tail) || /^\0+$/.test(tail)));
  return isBeginning && ifPossible(() => JSON.parse(tail)) === undefined;
}

/** Appends records, each one on disk before `append` returns. */
export class ResultsWriter {
  readonly #path: string;
  readonly #descriptor: number;

  /**
   * Opens or creates the file, and cuts off a torn record so that the next one starts on a line of its own. Throws a
   * UsageError where the file holds anything but records, and writes nothing then.
   */
  constructor(path: string) {
    this.#path = path;
    const { completeBytes, isTerminated } = readContent(path);
    this.#descriptor = orUsageError(
      () => openSync(path, 'a'),
      (code) => `Cannot write to ${path} (${code}). Choose another folder by --out.`,
    );
    if (fstatSync(this.#descriptor).size > completeBytes) ftruncateSync(this.#descriptor, completeBytes);
    if (!isTerminated) this.#write('\n');
  }

  /** Throws a ResultsFileError where the record is not kept, or not where it was to be. */
  append(record: CellRecord): void {
    this.#write(`${JSON.stringify(record)}\n`);
    if (this.#isInPlace()) return;
    throw new ResultsFileError(`${this.#path} was moved or removed while it was written.`);
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  /** All of the text or nothing: of a disk that is full a part may have been taken. */
  #write(text: string): void {
    const start = fstatSync(this.#descriptor).size;
    try {
      let rest = Buffer.from(text);
      while (rest.length > 0) rest = rest.subarray(writeSync(this.#descriptor, rest));
      fsyncSync(this.#descriptor);
    } catch (cause) {
      ftruncateSync(this.#descriptor, start);
      const { message } = cause as NodeJS.ErrnoException;
      throw new ResultsFileError(`${this.#path} takes no more records (${message}).`, { cause });
    }
  }

  #isInPlace(): boolean {
    const there = statSync(this.#path, { throwIfNoEntry: false });
    const open = fstatSync(this.#descriptor);
    return there !== undefined && there.ino === open.ino && there.dev === open.dev;
  }
}

/**
 * The record of a line, which `place` names. Throws a UsageError for a line that is not a record; nothing that the line
 * holds need be given up.
 */
function parseRecordLine(line: string, place: string): CellRecord {
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
