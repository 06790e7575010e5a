import { join } from 'node:path';
import type { AnyBenchmark } from '../benchmarks/definition.ts';
import { UsageError } from '../errors.ts';
import { isOfThisCode } from '../records/git-state.ts';
import { canonicalJson, type JsonObject } from '../records/json.ts';
import type { DeviceDescription } from '../records/environment.ts';
import type { CellRecord } from '../records/record.ts';
import { recordsSoFar } from '../records/results-folder.ts';
import { shellWord } from '../shell-word.ts';
import { askedSweep } from './asked-sweep.ts';
import type { Problem, StudyForm, StudyRun } from './problem.ts';

/** Where a study lies, and what it is measured on. */
export interface StudyPlace {
  readonly folder: string;
  readonly form: StudyForm;
  /** As --device says it, resolved to a type. */
  readonly device: string;
}

/** A cell of a run, and the record that it has. */
export interface PlannedCell {
  readonly cell: JsonObject;
  readonly name: string;
  /** The latest; null before it was measured. */
  readonly record: CellRecord | null;
  /** Whether it has an answer: a result, or that memory ran out. */
  readonly isSettled: boolean;
  /** Whether the record is of other code than this. */
  readonly isOlder: boolean;
}

/** One command of a study, with what it would measure and what there is of it. */
export interface PlannedRun {
  readonly problem: Problem;
  readonly run: StudyRun;
  readonly form: StudyForm;
  /** After `roofline`. */
  readonly words: readonly string[];
  readonly out: string;
  readonly cells: readonly PlannedCell[];
  /** All that the folder holds. */
  readonly records: readonly CellRecord[];
  /** Why it cannot be measured here, and its cells are not known; null where it can. */
  readonly hindrance: string | null;
}

/** The runs of a plan in the form of this place, in the plan's order. Throws UsageError for records that cannot be read. */
export async function planRuns(plan: readonly Problem[], place: StudyPlace): Promise<PlannedRun[]> {
  const planned: PlannedRun[] = [];
  // One after the other: to look for what one needs may start processes.
  for (const problem of plan)
    for (const run of problem.runs)
      if (run.words[place.form] !== null) planned.push(await planRun(problem, run, place));
  return planned;
}

async function planRun(problem: Problem, run: StudyRun, place: StudyPlace): Promise<PlannedRun> {
  const out = recordsOf(place.folder, run);
  const words = [...run.words[place.form]!.split(' '), ...deviceWords(run, place)];
  const records = recordsSoFar(out);
  const shared = { ...{ problem, run, words, out, records }, form: place.form };
  const hindrance = await missingGpus(run, place.form);
  if (hindrance !== null) return { ...shared, cells: [], hindrance };
  try {
    const { benchmark, options } = await askedSweep([...words, '--out', out]);
    const parameters = benchmark.parameters.parse(options.parameters(deviceOf(options.device)));
    const cells = cellsOf(benchmark, parameters, records);
    return { ...shared, cells, records: inOrderOf(cells, records), hindrance: null };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return { ...shared, cells: [], hindrance: error.message.split('\n')[0]! };
  }
}

/** The folder of a run's records. */
export function recordsOf(folder: string, run: StudyRun): string {
  return join(folder, 'records', run.name);
}

/** Ranks choose their device by their backend. */
function deviceWords(run: StudyRun, { device, form }: StudyPlace): string[] {
  return run.words[form]!.includes('--backend') ? [] : ['--device', device];
}

async function missingGpus({ gpus }: StudyRun, form: StudyForm): Promise<string | null> {
  if (gpus === undefined || form !== 'full') return null;
  const { cudaDeviceCount } = await import('@roofline/tensor-core');
  const found = cudaDeviceCount();
  return found >= gpus ? null : `needs ${gpus} GPUs, and ${found === 0 ? 'none is' : `${found} is`} here`;
}

/** What sweeps need to know of a device before it is opened. */
function deviceOf(spec: string): DeviceDescription {
  const type = spec.startsWith('cuda') ? 'cuda' : 'cpu';
  return { label: type === 'cuda' ? 'cuda:0' : 'cpu', type, name: spec, properties: {} };
}

function cellsOf(
  benchmark: AnyBenchmark,
  parameters: unknown,
  records: readonly CellRecord[],
): PlannedCell[] {
  const latest = new Map(records.map((record) => [canonicalJson(record.parameters), record]));
  const cells = new Map(benchmark.expand(parameters).map((cell) => [canonicalJson(cell), cell]));
  return [...cells].map(([key, cell]) => {
    const record = latest.get(key) ?? null;
    return {
      ...{ cell, record, name: benchmark.describe(cell) },
      isSettled: record?.status === 'ok' || record?.status === 'out-of-memory',
      isOlder: record !== null && !isOfThisCode(record.environment.git),
    };
  });
}

/** Records as the plan has their cells, whatever slice of the study measured them; those of other cells come last. */
function inOrderOf(cells: readonly PlannedCell[], records: readonly CellRecord[]): CellRecord[] {
  const planned = new Set(cells.flatMap(({ record }) => record ?? []));
  return [...planned, ...records.filter((record) => !planned.has(record))];
}

/** The line for a shell that measures a run, and goes on with what its folder holds. */
export function commandOf({ words, out }: PlannedRun): string {
  return `roofline ${words.join(' ')} --out ${shellWord(out)}`;
}

/** What a cell takes: as its run's cells took, or before the first as the plan expects. */
export function expectedCellMs({ run, form, records }: Pick<PlannedRun, 'run' | 'form' | 'records'>): number {
  if (records.length === 0) return run.secondsPerCell[form] * 1000;
  return records.reduce((sum, { durationMs }) => sum + durationMs, 0) / records.length;
}
