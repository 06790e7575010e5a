import { accessSync, constants, existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { checkArgument } from '../check-argument.ts';
import { shellWord } from '../shell-word.ts';
import { orUsageError } from '../attempt.ts';
import { UsageError } from '../errors.ts';
import { canonicalJson, type JsonObject } from './json.ts';
import { lockFolder } from './folder-lock.ts';
import { describeValue } from './describe-value.ts';
import { makeFolders } from '@roofline/cuda/host';
import { inWords } from '../parameters/words.ts';
import { identityOf, latestRecords, type CellRecord, type SweepIdentity } from './record.ts';
import { cannotRead, readResultsFile, ResultsWriter } from './results-file.ts';

const RESULTS_FILE = /^results(-(\d+))?\.jsonl$/;

/** A folder that one sweep has to itself until `close`. */
export interface ResultsFolder {
  readonly path: string;
  /** Records of the same sweep that were there before, the latest of each cell. */
  readonly earlier: readonly CellRecord[];
  append(record: CellRecord): void;
  close(): void;
}

/**
 * Opens (or makes) `path` for the sweep `identity`. Throws UsageError when the folder cannot be written, is in
 * use, or holds results of other settings or another device, unless `forceNew` asks for a file next to those.
 */
export function openResultsFolder(
  path: string,
  identity: SweepIdentity,
  { forceNew = false }: { forceNew?: boolean } = {},
): ResultsFolder {
  makeWritable(path);
  const unlock = lockFolder(path);
  try {
    const file = chooseFile(path, identity, forceNew);
    const earlier = latestRecords(readResultsFile(file));
    const writer = new ResultsWriter(file);
    return {
      path,
      earlier,
      append: (record) => writer.append(record),
      close() {
        writer.close();
        unlock();
      },
    };
  } catch (error) {
    unlock();
    throw error;
  }
}

/**
 * All records of a folder (or of one .jsonl file), the latest of each cell. Throws UsageError if there are none, and for a
 * file that cannot be read or holds anything else; it names the line.
 */
export function readResults(path: string): CellRecord[] {
  checkArgument('readResults', 'path', path, z.string());
  return recordsIn(path, () => {});
}

/** The same; `onTorn` is called for a file whose last record was not written to its end. */
export function recordsIn(path: string, onTorn: (message: string) => void): CellRecord[] {
  if (!existsSync(path)) throw new UsageError(`${path} does not exist.`);
  const records = recordsSoFar(path, onTorn);
  if (records.length === 0) throw new UsageError(`${path} holds no results: ${whereResultsAre(path)}`);
  return records;
}

/** The same for what may not be there yet, nor hold a record: a sweep can end in the middle of its first cell. */
export function recordsSoFar(path: string, onTorn: (message: string) => void = () => {}): CellRecord[] {
  if (!existsSync(path)) return [];
  const files = isFolder(path) ? resultsFiles(path).map((name) => join(path, name)) : [path];
  return latestRecords(files.flatMap((file) => readResultsFile(file, onTorn)));
}

function isFolder(path: string): boolean {
  return statSync(path).isDirectory();
}

function whereResultsAre(path: string): string {
  if (!isFolder(path)) return 'the file is empty.';
  const others = namesIn(path).filter((name) => name.endsWith('.jsonl') && !RESULTS_FILE.test(name));
  if (others.length > 0) return `name one of its files, such as ${shellWord(join(path, others.sort()[0]!))}.`;
  // Those of a study, whose runs each have a folder of their own.
  const runs = join(path, 'records');
  const [run] = existsSync(runs) && isFolder(runs) ? namesIn(runs).sort() : [];
  return run !== undefined
    ? `it is that of a study: name folders of its runs, such as ${shellWord(join(runs, run))}.`
    : `\`roofline e2e --out ${shellWord(path)}\` would write some.`;
}

/**
 * The records of several folders, the latest of each cell; `repeated` counts the measurements that a later one in
 * another folder replaces.
 */
export function readFolders(
  paths: readonly string[],
  onTorn: (message: string) => void = () => {},
): { records: CellRecord[]; repeated: number } {
  const byKey = new Map<string, CellRecord>();
  let repeated = 0;
  for (const record of paths.flatMap((path) => recordsIn(path, onTorn))) {
    const other = byKey.get(record.key);
    // A folder named twice repeats nothing.
    if (other !== undefined && other.startedAt !== record.startedAt) repeated++;
    if (other === undefined || other.startedAt <= record.startedAt) byKey.set(record.key, record);
  }
  return { records: [...byKey.values()], repeated };
}

/** Creates the folder and proves that files can be written there. Throws UsageError. */
export function makeWritable(path: string): void {
  checkWritable(path);
  orNotWritable(path, () => {
    makeFolders(resolve(path));
    accessSync(path, constants.W_OK | constants.X_OK);
  });
}

/** The same for what is there of the path, before anything is known that could be written. Makes nothing. */
export function checkWritable(path: string): void {
  let there = resolve(path);
  while (!existsSync(there)) there = dirname(there);
  if (!statSync(there).isDirectory()) {
    const what = there === resolve(path) ? 'it' : there;
    throw new UsageError(`Cannot write to ${path}: ${what} is no folder. Choose another by --out.`);
  }
  orNotWritable(path, () => accessSync(there, constants.W_OK | constants.X_OK));
}

function orNotWritable(path: string, attempt: () => void): void {
  orUsageError(attempt, (code) => `Cannot write to ${path} (${code}). Choose another folder by --out.`);
}

function chooseFile(path: string, identity: SweepIdentity, forceNew: boolean): string {
  const names = resultsFiles(path);
  const next = names.length === 0 ? 'results.jsonl' : `results-${lastNumber(names) + 1}.jsonl`;
  if (forceNew || names.length === 0) return join(path, next);

  const identities = names.map((name) => {
    const [record] = readResultsFile(join(path, name));
    return { name, identity: record ? identityOf(record) : null };
  });
  // One that an interrupted sweep left empty may be taken, where no other sweep has begun this one.
  const match =
    identities.findLast(({ identity: found }) => found !== null && isSame(found, identity)) ??
    identities.findLast(({ identity: found }) => found === null);
  if (match) return join(path, match.name);

  const other = identities.at(-1)!;
  throw new UsageError(
    `${path} holds results of another sweep (${differences(other.identity!, identity)}). ` +
      `Take another --out, or --force-new to write a file of its own (${next}) next to them.`,
  );
}

function isSame(a: SweepIdentity, b: SweepIdentity): boolean {
  return canonicalJson({ ...a }) === canonicalJson({ ...b });
}

/** What differs, in words: `warmup 5 there, 2 asked`. Of another benchmark all settings do. */
function differences(there: SweepIdentity, asked: SweepIdentity): string {
  if (there.benchmark !== asked.benchmark)
    return `benchmark ${there.benchmark} there, ${asked.benchmark} asked`;
  const flat = (identity: SweepIdentity) => ({
    device: identity.device,
    ...identity.variables,
    ...identity.settings,
  });
  const [a, b] = [flat(there), flat(asked)] as JsonObject[];
  const names = new Set([...Object.keys(a!), ...Object.keys(b!)]);
  return [...names]
    .filter((name) => JSON.stringify(a![name]) !== JSON.stringify(b![name]))
    .map((name) => `${inWords(name)} ${describeValue(a![name])} there, ${describeValue(b![name])} asked`)
    .join('; ');
}

/** `results.jsonl`, `results-2.jsonl`... in the order of their making. */
function resultsFiles(path: string): string[] {
  return namesIn(path)
    .filter((name) => RESULTS_FILE.test(name))
    .sort((a, b) => fileNumber(a) - fileNumber(b));
}

function namesIn(path: string): string[] {
  return orUsageError(() => readdirSync(path), cannotRead(path));
}

function fileNumber(name: string): number {
  return Number(RESULTS_FILE.exec(name)?.[2] ?? 1);
}

function lastNumber(names: readonly string[]): number {
  return Math.max(...names.map(fileNumber));
}
