import type { Block, Report, Section } from '@roofline/reports';
import { benchmarkOf } from '../benchmarks.ts';
import { canonicalJson } from '../json.ts';
import { identityOf, type CellRecord } from '../records/record.ts';

/** One report of all records; those of different devices, settings or benchmarks stay apart in it. */
export function reportOfRecords(records: readonly CellRecord[]): Report {
  const groups = Map.groupBy(records, (record) => canonicalJson({ ...identityOf(record) }));
  const reports = [...groups.values()].map((group) => benchmarkOf(group[0]!).toReport(group));
  return reports.length === 1 ? reports[0]! : joinReports(reports);
}

function joinReports(reports: readonly Report[]): Report {
  const subtitles = [...new Set(reports.flatMap(({ subtitle }) => subtitle ?? []))];
  return {
    title: [...new Set(reports.map(({ title }) => title))].join('; '),
    subtitle: subtitles.join('; '),
    createdAt: reports
      .map(({ createdAt }) => createdAt)
      .sort()
      .at(-1)!,
    summary: reports.flatMap(({ summary }) => summary),
    environment: reports.flatMap(({ environment }, index) =>
      environment.map(({ label, value }) => ({ label: `${index + 1}. ${label}`, value })),
    ),
    sections: reports.flatMap((report, index) =>
      report.sections.map((section) => prefix(section, report, index + 1)),
    ),
  };
}

/** Ids are unique within a report. */
function prefix(section: Section, { subtitle }: Report, number: number): Section {
  return {
    ...section,
    id: `${number}-${section.id}`,
    title: `${number}. ${section.title}${subtitle ? `, ${subtitle}` : ''}`,
    blocks: section.blocks.map((block): Block =>
      'id' in block ? { ...block, id: `${number}-${block.id}` } : block,
    ),
  };
}
