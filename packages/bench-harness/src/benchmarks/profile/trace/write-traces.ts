import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CellRecord } from '../../../records/record.ts';
import { makeWritable } from '../../../records/results-folder.ts';
import { e2eCell } from '../../e2e/parameters.ts';
import { cellSlug, lastStep } from '../interpret.ts';
import { kernelSpans } from '../kernel-spans.ts';
import { profileResult } from '../result.ts';
import { chromeTrace } from './chrome-trace.ts';

/** Writes the last step of each profile to `folder`/traces for Perfetto; gives the files. */
export function writeTraces(records: readonly CellRecord[], folder: string): string[] {
  return records.flatMap((record) => {
    if (record.status !== 'ok') return [];
    const result = profileResult.parse(record.result);
    const traces = join(folder, 'traces');
    makeWritable(traces);
    const path = join(traces, `${cellSlug(e2eCell.parse(record.parameters))}.json`);
    const spans = lastStep(kernelSpans(result.steps), result);
    writeFileSync(path, JSON.stringify(chromeTrace(spans, result.pid)));
    return [path];
  });
}
