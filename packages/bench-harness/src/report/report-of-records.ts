import type { Block, Report, Section } from '@roofline/reports';
import type { AnyBenchmark } from '../benchmarks/definition.ts';
import type { BenchmarkEntry } from '../benchmarks/entry.ts';
import { benchmarksOf } from '../benchmarks/registry.ts';
import { deviceIdentity } from '../records/environment.ts';
import { canonicalJson } from '../records/json.ts';
import { checkRecords, identityOf, type CellRecord } from '../records/record.ts';
import { placeText } from './report-head.ts';
import { factsOfRuns, runsSection } from './runs.ts';

/** What one question was answered with: records of one benchmark and device, whatever their settings. */
interface Part {
  /** Before the ids of what is in it: `e2e`, `e2e-2`. */
  readonly id: string;
  /** The question, in a few words. */
  readonly label: string;
  readonly records: readonly CellRecord[];
  readonly report: Report;
  /** Whether its title says what was found, not only what was asked. */
  readonly isClaim: boolean;
}

/**
 * One report of all records: those that answer one question on one device are one part of it, whatever their settings, which
 * it lists at its end. Throws UsageError for records of a benchmark that is not among `entries`, which are those of this
 * version if not given.
 */
export async function reportOfRecords(
  records: readonly CellRecord[],
  entries?: readonly BenchmarkEntry[],
): Promise<Report> {
  checkRecords('reportOfRecords', 'records', records);
  const benchmarks = await benchmarksOf(records, entries);
  const runs = [...Map.groupBy(records, (record) => canonicalJson({ ...identityOf(record) })).values()];
  const parts = partsOf(runs, benchmarks);
  if (runs.length === 1) return parts[0]!.report;
  return {
    ...(parts.length === 1 ? parts[0]!.report : joinReports(parts)),
    subtitle: placeText(records),
    environment: factsOfRuns(runs),
    ...withRuns(parts),
  };
}

function withRuns(parts: readonly Part[]): Pick<Report, 'sections'> {
  const sections = parts.length === 1 ? parts[0]!.report.sections : parts.flatMap(sectionsOf);
  return { sections: [...sections, runsSection(parts)] };
}

/** The parts, those that compare with a peer first. */
function partsOf(
  runs: readonly (readonly CellRecord[])[],
  benchmarks: ReadonlyMap<string, AnyBenchmark>,
): Part[] {
  const devices = new Set(runs.map(([first]) => deviceIdentity(first!.environment)));
  const questions = Map.groupBy(runs, (run) => {
    const { benchmark, environment } = run[0]!;
    const question = benchmarks.get(benchmark)!.question(run);
    return canonicalJson([
      benchmark,
      devices.size === 1 ? question : `${question}, ${environment.device.name}`,
      deviceIdentity(environment),
    ]);
  });
  const counts = new Map<string, number>();
  const parts = [...questions].flatMap(([key, group]) => {
    const [name, question] = JSON.parse(key) as [string, string];
    return withoutRepetitions(group).map((records, index): Part => {
      const count = (counts.get(name) ?? 0) + 1;
      counts.set(name, count);
      const { title, toReport } = benchmarks.get(name)!;
      const report = toReport(records);
      return {
        id: count === 1 ? name : `${name}-${count}`,
        label: index === 0 ? question : `${question}, run ${index + 1}`,
        records,
        report,
        isClaim: report.title !== title,
      };
    });
  });
  return parts.toSorted((a, b) => weight(b.report) - weight(a.report));
}

/** Runs together, but for those that measured the same cells in other settings: each of these begins records of its own. */
function withoutRepetitions(runs: readonly (readonly CellRecord[])[]): CellRecord[][] {
  const layers: { readonly cells: Set<string>; readonly records: CellRecord[] }[] = [];
  for (const run of runs) {
    const cells = run.map(({ parameters }) => canonicalJson(parameters));
    let layer = layers.find((each) => cells.every((cell) => !each.cells.has(cell)));
    if (!layer) layers.push((layer = { cells: new Set(), records: [] }));
    for (const cell of cells) layer.cells.add(cell);
    layer.records.push(...run);
  }
  return layers.map(({ records }) => records);
}

/** How much the chart of a report says: most where it compares with somebody else. */
function weight({ chart }: Report): number {
  if (chart?.kind === 'ratios') return /torch|jax/i.test(chart.theirs) ? 3 : 2;
  return chart ? 1 : 0;
}

function joinReports(parts: readonly Part[]): Report {
  const reports = parts.map(({ report }) => report);
  const { chart, title } = reports[0]!;
  return {
    title: parts[0]!.isClaim ? title : parts.map(({ label }) => label).join(', '),
    createdAt: reports
      .map(({ createdAt }) => createdAt)
      .sort()
      .at(-1)!,
    summary: parts.flatMap(mainFinding),
    ...(chart && { chart: prefixed(chart, parts[0]!.id) as NonNullable<Report['chart']> }),
    environment: [],
    sections: [],
  };
}

/** What a part found first, and what its title would claim where another's stands above the report. */
function mainFinding({ id, label, report, isClaim }: Part, index: number): string[] {
  const said = [isClaim && index > 0 ? `**${report.title}.**` : '', report.summary[0] ?? ''].filter(Boolean);
  return said.length === 0 ? [] : [`${relink(said.join(' '), id)} ([${label}](#${id}))`];
}

/** What a part found, with its chart where that is not above the whole report, and its sections. */
function sectionsOf({ id, label, report }: Part, index: number): Section[] {
  const { chart, summary, sections } = report;
  return [
    {
      ...{ id, title: label, text: summary.map((finding) => relink(finding, id)) },
      blocks: chart && index > 0 ? [prefixed(chart, id)] : [],
    },
    ...sections.map((section) => sectionOf(id, section)),
  ];
}

/** Ids are unique within a report. */
function sectionOf(id: string, section: Section): Section {
  return {
    ...section,
    id: `${id}-${section.id}`,
    level: 2,
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
