import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CellRecord } from '../../../records/record.ts';
import { makeWritable } from '../../../records/results-folder.ts';
import { chromeTrace } from './chrome-trace.ts';
import { cellSlug, interpretProfile, lastStep } from '../interpret.ts';

/** Writes the last step of each profile to `folder`/traces for Perfetto; gives the files. */
export function writeTraces(records: readonly CellRecord[], folder: string): string[] {
  return records.flatMap((record) => {
    const { cell, profiled } = interpretProfile(record);
    if (profiled === null) return [];
    const traces = join(folder, 'traces');
    makeWritable(traces);
    const path = join(traces, `${cellSlug(cell)}.json`);
    const spans = lastStep(profiled.spans, profiled.result);
    writeFileSync(path, JSON.stringify(chromeTrace(spans, profiled.result.pid)));
    return [path];
  });
}
