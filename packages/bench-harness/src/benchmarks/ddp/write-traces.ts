import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CellRecord } from '../../records/record.ts';
import { cellWords } from '../../parameters/cell-names.ts';
import { makeWritable } from '../../records/results-folder.ts';
import { kernelSpans } from '../profile/kernel-spans.ts';
import { type ChromeTrace, chromeTrace } from '../profile/trace/chrome-trace.ts';
import { ddpCellParameters } from './parameters.ts';
import { ddpResult, type ProfiledPass } from './result.ts';

/**
 * Writes the profiled pass of each cell to `folder`/traces for Perfetto: a process for each rank, in it the streams of
 * computation and communication side by side. Gives the files.
 */
export function writeDdpTraces(records: readonly CellRecord[], folder: string): string[] {
  return records.flatMap((record) => {
    if (record.status !== 'ok') return [];
    const trace = ddpTrace(ddpResult.parse(record.result).profiledPasses);
    if (trace.traceEvents.length === 0) return [];
    const traces = join(folder, 'traces');
    makeWritable(traces);
    const path = join(
      traces,
      `${cellWords(ddpCellParameters, record.parameters)
        .join(' ')
        .replace(/[^\w.]+/g, '-')}.json`,
    );
    writeFileSync(path, JSON.stringify(trace));
    return [path];
  });
}

/** The ranks' passes by one clock, which begins with the first of them. */
export function ddpTrace(passes: readonly ProfiledPass[]): ChromeTrace {
  const profiled = passes.map((pass) => (pass.status === 'ok' ? pass : null));
  const firstMs = Math.min(...profiled.map((pass) => pass?.startMs ?? Infinity));
  const ranks = profiled.flatMap((pass, rank) => {
    if (pass === null) return [];
    const behindUs = (pass.startMs - firstMs) * 1000;
    const spans = kernelSpans([pass.profile]);
    const shifted = spans.map((span) => ({ ...span, startUs: span.startUs + behindUs }));
    return [chromeTrace(shifted, rank, `rank ${rank}`)];
  });
  return { displayTimeUnit: 'ns', traceEvents: ranks.flatMap(({ traceEvents }) => traceEvents) };
}
