import {
  isDrawing,
  type Block,
  type Picture,
  type Report,
  type Row,
  type Section,
  type Table,
} from '@roofline/reports';
import type { AnyBenchmark } from '../benchmarks/definition.ts';
import { benchmarksOf } from '../benchmarks/registry.ts';
import type { CellRecord } from '../records/record.ts';
import { factsOfRuns } from '../report/runs.ts';
import { placeText } from '../report/report-head.ts';
import { sentenceOf } from './answer.ts';
import { missingSection, olderNotes } from './missing.ts';
import { commandOf, type PlannedRun } from './planned-runs.ts';
import type { Problem, StudyRows } from './problem.ts';

/** A run whose records were read and drawn. */
interface ShownRun {
  readonly planned: PlannedRun;
  readonly benchmark: AnyBenchmark | null;
  readonly report: Report | null;
}

/** The study as one document in the order of the plan: nothing is said that the records do not hold. */
export async function studyDocument(runs: readonly PlannedRun[]): Promise<Report> {
  const shown = await Promise.all(runs.map(shownRun));
  const rows = rowsOf(shown);
  const records = runs.flatMap((run) => run.records);
  const problems = [...Map.groupBy(shown, ({ planned }) => planned.problem)];
  const sections = problems.map(([problem, of]) => problemSection(problem, of, rows));
  const summary = problems.flatMap(([problem]) => {
    const [first] = answersOf(problem, rows);
    return first === undefined ? [] : [`${first} ([${problem.title}](#${problem.id}))`];
  });
  return {
    title: 'A systems study of Transformer training',
    ...(records.length > 0 && { subtitle: placeText(records) }),
    createdAt: latestOf(records),
    summary: summary.length > 0 ? summary : ['Nothing was measured yet.'],
    environment: records.length > 0 ? factsOfRuns([records]) : [],
    sections: [...sections, missingSection(runs)].map((section, index) =>
      index === 0 ? { ...section, blocks: [...olderNotes(runs), ...section.blocks] } : section,
    ),
  };
}

async function shownRun(planned: PlannedRun): Promise<ShownRun> {
  const { records } = planned;
  if (records.length === 0) return { planned, benchmark: null, report: null };
  const benchmarks = await benchmarksOf(records);
  const [[, benchmark]] = [...benchmarks] as [[string, NonNullable<ReturnType<typeof benchmarks.get>>]];
  return { planned, benchmark, report: benchmark.toReport(records) };
}

/** Pictures of single cells that the document has no room for, under ids as its own. */
export async function picturesOfCells(runs: readonly PlannedRun[]): Promise<Picture[]> {
  const pictures = runs.map(async ({ run, records }) => {
    const benchmarks = await benchmarksOf(records);
    return [...benchmarks.values()].flatMap((benchmark) =>
      benchmark
        .toPictures(records)
        .map((picture): Picture => ({ ...picture, id: `${run.name}-${picture.id}` })),
    );
  });
  return (await Promise.all(pictures)).flat();
}

function latestOf(records: readonly CellRecord[]): string {
  return (
    records
      .map(({ startedAt }) => startedAt)
      .sort()
      .at(-1) ?? new Date(0).toISOString()
  );
}

function tablesOf({ sections }: Report): Table[] {
  return sections.flatMap(({ blocks }) => blocks).filter((block) => block.kind === 'table');
}

/** The rows of all tables, shown or not, by `RUN/TABLE`. */
function rowsOf(shown: readonly ShownRun[]): StudyRows {
  return new Map(
    shown.flatMap(({ planned, report }) =>
      (report ? tablesOf(report) : []).map((table): [string, readonly Row[]] => [
        `${planned.run.name}/${table.id}`,
        table.rows,
      ]),
    ),
  );
}

/** The sentences that the rows make of a problem's answers. */
export function answersOf({ answers }: Problem, rows: StudyRows): string[] {
  return answers.flatMap((answer) => sentenceOf(answer, rows) ?? []);
}

function problemSection(problem: Problem, shown: readonly ShownRun[], rows: StudyRows): Section {
  const commands = shown.map(({ planned }) => `\`${commandOf(planned)}\``);
  const answers = answersOf(problem, rows);
  return {
    ...{ id: problem.id, title: problem.title },
    text: [
      `**${problem.question}**`,
      ...(answers.length > 0 ? answers : ['Nothing of it was measured yet.']),
      `Measured by ${commands.join(', ')}.`,
    ],
    blocks: [...shown.flatMap(blocksOf), ...blocksTogether(problem, shown)],
  };
}

/** What a study shows of a run's report, under ids that begin with the run's name. */
function blocksOf({ planned: { run }, report }: ShownRun): Block[] {
  if (report === null) return [];
  return report.sections
    .flatMap(({ blocks }) => blocks)
    .flatMap((block): Block[] => {
      if (block.kind === 'note')
        return block.tone === 'warning' ? [{ ...block, text: unlinked(block.text) }] : [];
      return run.shows.some((start) => block.id.startsWith(start))
        ? [{ ...block, id: `${run.name}-${block.id}` }]
        : [];
    });
}

/** Drawings of all runs of a problem in one, as of two backends. */
function blocksTogether({ id, together = [] }: Problem, shown: readonly ShownRun[]): Block[] {
  const benchmark = shown.find((run) => run.benchmark)?.benchmark;
  if (!benchmark || together.length === 0) return [];
  const { sections } = benchmark.toReport(shown.flatMap(({ planned }) => planned.records));
  return sections
    .flatMap(({ blocks }) => blocks)
    .flatMap((block) =>
      isDrawing(block) && together.some((start) => block.id.startsWith(start))
        ? [{ ...block, id: `${id}-${block.id}` }]
        : [],
    );
}

/** Links lead into the run's own report, which is not here. */
function unlinked(text: string): string {
  return text.replace(/\[([^\]]+)\]\(#[^)]*\)/g, '$1');
}
