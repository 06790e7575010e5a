import type { Block, Report } from '@roofline/reports';

export type Note = Extract<Block, { kind: 'note' }>;

/** A report that says `notes` below its first results, where the numbers stand that they are about. */
export function withFirstResultsNotes(report: Report, notes: readonly Note[]): Report {
  const [first, ...others] = report.sections;
  if (notes.length === 0 || !first) return report;
  return { ...report, sections: [{ ...first, blocks: [...first.blocks, ...notes] }, ...others] };
}
