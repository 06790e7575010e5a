import { existsSync, globSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { UsageError } from '../errors.ts';
import { readFolders } from '../records/results-folder.ts';
import { asAuthored, AUTHORED_FILE } from './authored/authored-report.ts';
import { reportOfRecords } from './report-of-records.ts';
import { writeReport, type WrittenReport } from './write-report.ts';

const POLL_MS = 500;
/** How often the page in the browser reloads. */
const REFRESH_SECONDS = 2;

/** What is watched, and where the report goes. */
export interface WatchedReport {
  /** Folders of results, which a sweep may only begin to write. */
  readonly paths: readonly string[];
  readonly out: string;
  readonly png?: boolean;
  /** Ends it. */
  readonly signal: AbortSignal;
  onWritten(written: WrittenReport, cells: number): void;
  /** What stands in the way of a report for now: there are no results yet, or the author's file has a fault. */
  onHindrance(message: string): void;
}

/**
 * Rewrites the report whenever the results change, until it is aborted, as a page that reloads itself; at its end as one that does not.
 */
export async function watchReport({ paths, out, png = false, signal, ...on }: WatchedReport): Promise<void> {
  const write = async (refresh: object) => {
    const { records } = readFolders(paths);
    const report = asAuthored(await reportOfRecords(records), [out, ...paths]);
    return { written: await writeReport(report, out, { png, ...refresh }), cells: records.length };
  };
  let seen = '';
  let hindrance = '';
  while (!signal.aborted) {
    const state = stateOf([...paths, out]);
    if (state !== seen) {
      seen = state;
      try {
        const { written, cells } = await write({ refreshSeconds: REFRESH_SECONDS });
        hindrance = '';
        on.onWritten(written, cells);
      } catch (error) {
        if (!(error instanceof UsageError)) throw error;
        if (error.message !== hindrance) on.onHindrance(error.message);
        hindrance = error.message;
      }
    }
    await sleep(POLL_MS, undefined, { signal }).catch(() => {});
  }
  if (hindrance === '' && seen !== '') await write({});
}

/** Changes with the files of a report: when each was written, and how long it is. */
function stateOf(paths: readonly string[]): string {
  const files = paths.flatMap((path) =>
    existsSync(path) && statSync(path).isFile()
      ? [path]
      : ['*.jsonl', AUTHORED_FILE].flatMap((pattern) =>
          globSync(pattern, { cwd: path }).map((name) => join(path, name)),
        ),
  );
  return [...new Set(files)].map((file) => describeFile(file)).join('\n');
}

function describeFile(file: string): string {
  const { mtimeMs, size } = statSync(file);
  return `${file} ${mtimeMs} ${size}`;
}
