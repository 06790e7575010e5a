import { formatPercent } from '@roofline/reports';
import { defineCommand, jsonFlag } from '../cli/command.ts';
import { choiceOf } from '../cli/flags/choices.ts';
import { deviceFlag } from '../cli/flags/device-flag.ts';
import { parseDuration, parseList, parsePath, unknownChoice } from '../cli/option-values.ts';
import { printJson, printLine, tell } from '../cli/output.ts';
import { printProse, tellSentence } from '../cli/print-sentence.ts';
import { EXIT } from '../errors.ts';
import type { StudyForm, Problem } from '../study/problem.ts';
import type { PlannedRun } from '../study/planned-runs.ts';

const forms = ['full', 'quick'] as const satisfies readonly StudyForm[];

export const studyCommand = defineCommand({
  flags: {
    ...deviceFlag,
    form: {
      ...choiceOf('form', forms),
      defaultDescription: 'full on a GPU, quick on the CPU',
      describe: "The assignment's sizes, or a quarter of an hour of two CPU cores",
    },
    out: {
      type: 'string',
      default: 'results/study',
      describe: 'Folder of the study; the same one, or a copy of it, resumes it',
      coerce: parsePath('out'),
    },
    budget: {
      type: 'string',
      describe: 'Measure for so long (10m, 90s, 1h), the most wanted first; 0m writes the document alone',
      coerce: parseDuration('budget'),
    },
    problem: {
      type: 'string',
      describe: 'Only these problems, by their ids in the handout',
      coerce: parseList('problem'),
    },
    plan: { type: 'boolean', default: false, describe: 'Print the cells and their time; measure nothing' },
    fresh: {
      type: 'boolean',
      default: false,
      describe: 'Measure cells again whose records are of other code',
    },
    ...jsonFlag,
  },
  examples: [
    ['roofline study', 'all problems of the assignment, and one document of them'],
    ['roofline study --plan', 'how many cells, and how long they are expected to take'],
    ['roofline study --device cuda --budget 8m --out study', 'a slice; again to go on'],
    ['roofline study --out study --budget 0m', 'the document alone, of the records that are there'],
    ['roofline study --problem memory_profiling', 'one problem'],
  ],
  async run({ device, form, out, budget, problem, plan, fresh, json }) {
    const startedMs = performance.now();
    const { studyPlan } = await import('../study/plan.ts');
    const { planRuns } = await import('../study/planned-runs.ts');
    const { showWhile } = await import('../cli/show-while.ts');
    const problems = chosen(studyPlan, problem);
    const place = await findPlace({ device, form, isMeasuring: !plan && budget !== 0 });
    const runs = () => planRuns(problems, { ...place, folder: out });
    const planned = await showWhile('Reading the plan', runs);
    if (plan) return printPlan(planned, { json, fresh });
    const untilMs = startedMs + (budget ?? Infinity);
    const exitCode = budget === 0 ? EXIT.ok : await measure(planned, { untilMs, fresh, out });
    const after = await runs();
    await write(after, { out, json, fresh });
    return exitCode;
  },
});

/** Throws UsageError for an id that is none of the plan's. */
function chosen(plan: readonly Problem[], ids: readonly string[] | undefined): readonly Problem[] {
  const known = plan.map(({ id }) => id);
  const unknown = ids?.find((id) => !known.includes(id));
  if (unknown !== undefined) throw unknownChoice('problem', unknown, known);
  return ids ? plan.filter(({ id }) => ids.includes(id)) : plan;
}

/** Where and in which form; where nothing is measured, no device is opened that --form says enough about. */
async function findPlace(asked: { device: string; form: StudyForm | undefined; isMeasuring: boolean }) {
  const { device, form, isMeasuring } = asked;
  if (form !== undefined && !isMeasuring)
    return { form, device: form === 'full' && device === 'auto' ? 'cuda' : device };
  const { openDevice } = await import('../device/prepare-device.ts');
  const found = await openDevice(device);
  const type = found?.type ?? 'cpu';
  return {
    form: form ?? (type === 'cuda' ? 'full' : 'quick'),
    device: device === 'auto' ? type : device,
  } as const;
}

/** The exit code: whether it was interrupted, and whether a run's folder took no cells. */
async function measure(
  planned: readonly PlannedRun[],
  { untilMs, fresh, out }: { untilMs: number; fresh: boolean; out: string },
): Promise<number> {
  const { measureRuns } = await import('../study/measure-runs.ts');
  const { watchInterruption } = await import('../cli/interruption.ts');
  const { ProgressDisplay } = await import('../cli/progress.ts');
  const { commandOf } = await import('../study/planned-runs.ts');
  const { lockFolder } = await import('../records/folder-lock.ts');
  const { makeWritable } = await import('../records/results-folder.ts');
  makeWritable(out);
  // Two that measured at once would disturb each other.
  const unlock = lockFolder(out);
  using interruption = watchInterruption();
  using progress = new ProgressDisplay();
  let exitCode: number = EXIT.ok;
  try {
    await measureRuns(planned, {
      ...{ untilMs, fresh, signal: interruption.signal, observer: progress },
      onRun: ({ problem, run }) => progress.line(`${problem.title} (${run.name})`),
      onRefused(planned, why) {
        exitCode = EXIT.usage;
        progress.clear();
        tellSentence(`${planned.run.name} is not measured: ${why} Its command is \`${commandOf(planned)}\`.`);
      },
      onStatus: (...status) => progress.status(...status),
    });
  } finally {
    unlock();
  }
  return interruption.signal.aborted ? EXIT.interrupted : exitCode;
}

async function write(
  runs: readonly PlannedRun[],
  { out, json, fresh }: { out: string; json: boolean; fresh: boolean },
): Promise<void> {
  const { studyDocument, picturesOfCells } = await import('../study/document.ts');
  const { writeStudy } = await import('../study/write-study.ts');
  const { stateOf } = await import('../study/missing.ts');
  const { ProgressDisplay } = await import('../cli/progress.ts');
  const report = await studyDocument(runs);
  using progress = new ProgressDisplay();
  const written = await writeStudy(report, out, await picturesOfCells(runs), (...done) =>
    progress.status('Drawing figures', ...done),
  );
  progress.clear();
  const state = stateOf(runs, fresh);
  if (json) return printJson({ ...written, ...state, findings: report.summary });
  for (const sentence of report.summary) printProse(sentence);
  if (written.withoutPng !== null) tellSentence(`No PNG files: ${written.withoutPng}`);
  printLine(`\n${leftInWords(state)}`);
  for (const [reason, of] of Map.groupBy(runs, ({ hindrance }) => hindrance))
    if (reason !== null) tell(`Not here: ${of.map(({ run }) => run.name).join(', ')}: ${reason}`);
  printLine(`Study: ${written.html}, and study.md, study.tex, study.typ and figures/ next to it`);
}

function leftInWords({
  planned,
  settled,
  older,
  leftMs,
}: ReturnType<typeof import('../study/missing.ts').stateOf>): string {
  const share = planned === 0 ? '' : ` (${formatPercent(settled / planned)})`;
  const left = settled === planned ? '' : `; what is left takes about ${minutes(leftMs)}`;
  const of =
    older > 0 ? `; ${older} of them are of another state of the code (--fresh measures them again)` : '';
  return `${settled} of ${planned} cells are measured${share}${left}${of}.`;
}

function minutes(ms: number): string {
  return `${Math.max(1, Math.round(ms / 60_000))} min`;
}

async function printPlan(
  runs: readonly PlannedRun[],
  { json, fresh }: { json: boolean; fresh: boolean },
): Promise<number> {
  const { planTable } = await import('../study/missing.ts');
  const { stateOf } = await import('../study/missing.ts');
  const table = planTable(runs, fresh);
  const state = stateOf(runs, fresh);
  if (json) printJson({ ...state, rows: table.rows });
  else {
    const { printTable } = await import('../cli/print-table.ts');
    printTable(table);
    printLine(
      `${state.planned} cells, of which ${state.settled} are measured; the rest is expected to take ${minutes(state.leftMs)}.`,
    );
  }
  return EXIT.ok;
}
