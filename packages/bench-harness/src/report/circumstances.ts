import type { Note, Report } from '@roofline/reports';
import type { CellRecord } from '../records/record.ts';
import { busyMachineNotes, throttledClocksNotes } from './disturbances.ts';

/** A report with notes, after its first results, on what may have changed the numbers in it. */
export function withCircumstances(
  report: Report,
  records: readonly CellRecord[],
  describe: (record: CellRecord) => string,
): Report {
  const notes = [
    ...mixedCodeNotes(records),
    ...busyMachineNotes(records, describe),
    ...throttledClocksNotes(records, describe),
  ];
  const [first, ...others] = report.sections;
  if (notes.length === 0 || !first) return report;
  return { ...report, sections: [{ ...first, blocks: [...first.blocks, ...notes] }, ...others] };
}

/**
 * Warns of records that more than one state of the code measured, as where a sweep was resumed after a change: their
 * numbers may differ for that reason, and the environment is that of the latest.
 */
function mixedCodeNotes(records: readonly CellRecord[]): Note[] {
  const states = [...new Set(records.map(codeOf))];
  if (states.length < 2) return [];
  const text = `Not all cells were measured by the same state of the code: ${states.join(', ')}.`;
  return [{ kind: 'note', tone: 'warning', text }];
}

/** The commit, or outside of a checkout the version. */
function codeOf({ environment: { git, packages } }: CellRecord): string {
  if (git === null) return `version ${packages['@roofline/bench-harness'] ?? 'unknown'}`;
  return `${git.commit.slice(0, 8)}${git.dirty ? ' with changes' : ''}`;
}
