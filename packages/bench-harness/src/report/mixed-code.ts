import type { Block, Report } from '@roofline/reports';
import type { CellRecord } from '../records/record.ts';

/**
 * A report that warns where its records were measured by more than one state of the code, as where a sweep was resumed
 * after a change: their numbers may differ for that, and the environment is that of the latest.
 */
export function withMixedCode(report: Report, records: readonly CellRecord[]): Report {
  const states = [...new Set(records.map(codeOf))];
  const [first, ...others] = report.sections;
  if (states.length < 2 || !first) return report;
  const note: Block = {
    kind: 'note',
    tone: 'warning',
    text: `Not all cells are of one state of the code: ${states.join(', ')}.`,
  };
  return { ...report, sections: [{ ...first, blocks: [...first.blocks, note] }, ...others] };
}

/** The commit, or outside of a checkout the version. */
function codeOf({ environment: { git, packages } }: CellRecord): string {
  if (git === null) return `version ${packages['@roofline/bench-harness'] ?? 'unknown'}`;
  return `${git.commit.slice(0, 8)}${git.dirty ? ' with changes' : ''}`;
}
