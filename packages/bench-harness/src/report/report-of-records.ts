import type { Block, Report, Section } from '@roofline/reports';
import type { BenchmarkEntry } from '../benchmarks/entry.ts';
import { benchmarksOf } from '../benchmarks/registry.ts';
import { canonicalJson } from '../records/json.ts';
import { distinctions } from './distinctions.ts';
import { checkRecords, identityOf, type CellRecord } from '../records/record.ts';

/** The report of the records of one benchmark, device and settings. */
interface Part {
  readonly benchmark: string;
  readonly records: readonly CellRecord[];
  readonly report: Report;
}

/** A part with its place in a report of several. */
interface NamedPart {
  /** Before the ids of what is in it: `e2e`, `e2e-2`. */
  readonly id: string;
  readonly benchmark: string;
  /** Before the titles: the benchmark, and what sets this part apart from others of the same benchmark. */
  readonly label: string;
  readonly report: Report;
}

/**
 * One report of all records; those of different devices, settings or benchmarks stay apart in it. Throws UsageError
 * for records of a benchmark that is not among `entries`, which are those of this version if not given.
 */
export async function reportOfRecords(
  records: readonly CellRecord[],
  entries?: readonly BenchmarkEntry[],
): Promise<Report> {
  checkRecords('reportOfRecords', 'records', records);
  const benchmarks = await benchmarksOf(records, entries);
  const groups = Map.groupBy(records, (record) => canonicalJson({ ...identityOf(record) }));
  const parts = [...groups.values()].map((group): Part => {
    const { name, toReport } = benchmarks.get(group[0]!.benchmark)!;
    return { benchmark: name, records: group, report: toReport(group) };
  });
  return parts.length === 1 ? parts[0]!.report : joinReports(nameParts(parts));
}

function nameParts(parts: readonly Part[]): NamedPart[] {
  return [...Map.groupBy(parts, ({ benchmark }) => benchmark).values()].flatMap((alike) => {
    const names = distinctions(alike.map(({ records }) => records));
    return alike.map(({ benchmark, report }, index) => ({
      benchmark,
      id: index === 0 ? benchmark : `${benchmark}-${index + 1}`,
      label: alike.length === 1 ? benchmark : `${benchmark} (${names[index]})`,
      report,
    }));
  });
}

function joinReports(parts: readonly NamedPart[]): Report {
  const reports = parts.map(({ report }) => report);
  const titles = new Set(reports.map(({ title }) => title));
  const subtitles = new Set(reports.flatMap(({ subtitle }) => subtitle ?? []));
  const charted = parts.find(({ report }) => report.chart);
  return {
    title: titles.size === 1 ? reports[0]!.title : `Measurements: ${namesOf(parts).join(', ')}`,
    subtitle: [...subtitles].join('; '),
    createdAt: reports
      .map(({ createdAt }) => createdAt)
      .sort()
      .at(-1)!,
    summary: takeInTurns(parts.map(partSummary)),
    ...(charted && { chart: prefixed(charted.report.chart!, charted.id) as NonNullable<Report['chart']> }),
    environment: joinEnvironments(parts),
    sections: parts.flatMap((part) => sectionsOf(part, part === charted)),
  };
}

function namesOf(parts: readonly NamedPart[]): string[] {
  return [...new Set(parts.map(({ benchmark }) => benchmark))];
}

/** Each sentence leads to the first section of what it is about. */
function partSummary({ id, label, report }: NamedPart): string[] {
  const [first] = report.sections;
  const origin = first ? `[${label}](#${id}-${first.id})` : label;
  return report.summary.map((sentence) => `${origin}: ${relink(sentence, id)}`);
}

/** What is the same everywhere is said once. */
function joinEnvironments(parts: readonly NamedPart[]): Report['environment'] {
  const facts = parts.flatMap((part) => part.report.environment.map((fact) => ({ ...fact, part })));
  const groups = [...Map.groupBy(facts, ({ label, value }) => canonicalJson([label, value])).values()];
  return groups.map((group) => {
    const { label, value } = group[0]!;
    const origin = originOf(
      group.map(({ part }) => part),
      parts,
    );
    return { label: origin === '' ? label : `${label} (${origin})`, value };
  });
}

/** Which parts say something: all of them (empty), all of one device (its name), or their names. */
function originOf(group: readonly NamedPart[], parts: readonly NamedPart[]): string {
  if (group.length === parts.length) return '';
  const device = group[0]!.report.subtitle;
  const alike = parts.filter(({ report }) => report.subtitle === device);
  const isOfDevice = group.every((part) => alike.includes(part)) && group.length === alike.length;
  return isOfDevice && device !== undefined ? device : group.map(({ label }) => label).join(', ');
}

/** The first of each, then the second of each: what a part has to say comes in the order of its weight. */
function takeInTurns<T>(lists: readonly (readonly T[])[]): T[] {
  const longest = Math.max(...lists.map(({ length }) => length));
  return Array.from({ length: longest }, (_, turn) =>
    lists.flatMap((list) => list.slice(turn, turn + 1)),
  ).flat();
}

/** A chart that is not above the whole report is in its part's first section. */
function sectionsOf(part: NamedPart, isCharted: boolean): Section[] {
  const { chart, sections } = part.report;
  return sections.map((section, index) =>
    sectionOf(
      part,
      index === 0 && chart && !isCharted ? { ...section, blocks: [chart, ...section.blocks] } : section,
    ),
  );
}

/** Ids are unique within a report. */
function sectionOf({ id, label }: NamedPart, section: Section): Section {
  return {
    ...section,
    id: `${id}-${section.id}`,
    title: `${label}: ${section.title}`,
    ...(section.text && { text: section.text.map((text) => relink(text, id)) }),
    blocks: section.blocks.map((block) => prefixed(block, id)),
  };
}

function prefixed(block: Block, id: string): Block {
  return block.kind === 'note'
    ? { ...block, text: relink(block.text, id) }
    : { ...block, id: `${id}-${block.id}` };
}

/** Links into the part follow its ids. */
function relink(text: string, id: string): string {
  return text.replace(/\]\(#([\w:.-]+)\)/g, `](#${id}-$1)`);
}
