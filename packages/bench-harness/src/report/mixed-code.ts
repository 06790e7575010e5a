import type { Note } from '@roofline/reports';
import type { CellRecord } from '../records/record.ts';

/**
 * Warns of records that were measured by more than one state of the code, as where a sweep was resumed after a change: their
 * numbers may differ for that, and the environment is that of the latest.
 */
export function mixedCodeNotes(records: readonly CellRecord[]): Note[] {
  const states = [...new Set(records.map(codeOf))];
  if (states.length < 2) return [];
  const text = `Not all cells are of one state of the code: ${states.join(', ')}.`;
  return [{ kind: 'note', tone: 'warning', text }];
}

/** The commit, or outside of a checkout the version. */
function codeOf({ environment: { git, packages } }: CellRecord): string {
  if (git === null) return `version ${packages['@roofline/bench-harness'] ?? 'unknown'}`;
  return `${git.commit.slice(0, 8)}${git.dirty ? ' with changes' : ''}`;
}
