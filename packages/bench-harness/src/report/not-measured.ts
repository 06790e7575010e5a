import type { Report, Section } from '@roofline/reports';
import type { CellRecord } from '../records/record.ts';
import { firstLine, statusInWords } from './values-in-words.ts';

const sectionId = 'not-measured';

/** A report with the cells that have no result, and why: all of them, whatever its own tables show. */
export function withUnmeasured(
  report: Report,
  records: readonly CellRecord[],
  describe: (record: CellRecord) => string,
): Report {
  const unmeasured = records.filter(({ status }) => status !== 'ok');
  if (unmeasured.length === 0) return report;
  const isNothing = unmeasured.length === records.length;
  return {
    ...report,
    summary: [
      ...(isNothing ? [`Nothing was measured; the report [tells why](#${sectionId}).`] : []),
      ...report.summary,
    ],
    sections: [...report.sections, unmeasuredSection(unmeasured, describe)],
  };
}

function unmeasuredSection(
  records: readonly CellRecord[],
  describe: (record: CellRecord) => string,
): Section {
  return {
    id: sectionId,
    title: 'Not measured',
    blocks: [
      {
        kind: 'table',
        id: 'cells-not-measured',
        title: 'Cells without a result',
        columns: [
          { key: 'cell', label: 'Cell', kind: 'text' },
          { key: 'outcome', label: 'Outcome', kind: 'text' },
          { key: 'why', label: 'Why', kind: 'text' },
        ],
        rows: records.map((record) => ({
          cell: describe(record),
          outcome: statusInWords(record.status),
          why: firstLine(record.error?.message ?? ''),
        })),
      },
    ],
  };
}
