import { z } from 'zod';
import { checkBenchmark } from '../benchmarks/check-benchmark.ts';
import type { Benchmark } from '../benchmarks/definition.ts';
import { anyObject, checkArgument, anyFunction, firstIssue } from '../check-argument.ts';
import { type Ceilings, ceilingsSchema } from '../measuring/ceilings.ts';
import type { JsonObject } from '../records/json.ts';
import { completeEnvironment, type Environment } from '../records/environment.ts';
import { cellKey, SCHEMA_VERSION, sweepIdentity, type CellRecord } from '../records/record.ts';
import { ResultsFileError } from '../errors.ts';
import { openResultsFolder, type ResultsFolder } from '../records/results-folder.ts';
import type { CellOutcome } from './cell-outcome.ts';
import type { CellProcess } from './cell-process.ts';
import { SharedProcess } from './shared-process.ts';
import { watchOtherWork } from '../records/other-work.ts';
import { watchThrottling } from '../records/watch-throttling.ts';
import { compileAhead } from './compile-ahead.ts';

/** Called with what happens, for display only. */
export interface SweepObserver {
  /** `kept` of the `total` cells were measured before. */
  sweepStarted?(total: number, kept: number): void;
  /** What goes on, or went on, before the first cell. */
  preparing?(text: string): void;
  prepared?(text: string): void;
  /** `index` counts from 1 within all cells of the sweep. */
  cellStarted?(description: string, index: number): void;
  cellProgressed?(done: number, total: number, message?: string): void;
  cellFinished?(record: CellRecord): void;
}

/** What a sweep measures, and where it keeps the records. */
export interface SweepOptions<Parameters> {
  readonly parameters: Parameters;
  readonly environment: Environment;
  readonly ceilings: Ceilings | null;
  /** The folder that keeps the records. */
  readonly out: string;
  readonly forceNew?: boolean;
  /** For each cell; null for none. */
  readonly timeoutMs?: number | null;
  /** Aborting kills the running cell, keeps what was measured, and ends the sweep. */
  readonly signal?: AbortSignal;
  readonly observer?: SweepObserver;
  /** The task that cells run, where it is not the built-in one of the benchmark's name; see `loadTask`. */
  readonly task?: string;
  /** Whether a record that the folder holds still counts; its cell is measured again where not. Without it all do. */
  readonly isCurrent?: (record: CellRecord) => boolean;
  /** Asked before each cell that is to be measured; one that is refused is left, and later ones are asked for. */
  readonly hasTimeFor?: (cell: JsonObject) => boolean;
  /**
   * Whether cells of a GPU follow one another in one process, where their benchmark allows that. What starts a process (Node,
   * CUDA, libraries) is then paid once, and code that the cells before have warmed stays warm: a record says how many there were.
   */
  readonly sharesProcess?: boolean;
}

const callback = anyFunction.optional();
const sweepOptions = z.strictObject({
  parameters: anyObject,
  environment: completeEnvironment,
  ceilings: ceilingsSchema.nullable(),
  out: z.string().min(1, 'is empty'),
  forceNew: z.boolean().optional(),
  timeoutMs: z.number().positive().nullish(),
  signal: z.instanceof(AbortSignal).optional(),
  observer: z
    .object({
      sweepStarted: callback,
      preparing: callback,
      prepared: callback,
      cellStarted: callback,
      cellProgressed: callback,
      cellFinished: callback,
    })
    .optional(),
  task: z.string().optional(),
  isCurrent: callback,
  hasTimeFor: callback,
  sharesProcess: z.boolean().optional(),
});

/** The outcome of a sweep. */
export interface SweepOutcome {
  /** One record for each cell that has one, in the order of the sweep. */
  readonly records: readonly CellRecord[];
  readonly total: number;
  readonly interrupted: boolean;
  /** Why records could no longer be kept, which ended the sweep; the last of `records` is then nowhere else. */
  readonly writeError: ResultsFileError | null;
}

/**
 * Measures every cell of a benchmark that the folder does not hold yet, each in a process of its own unless they are to share
 * one, and appends each record at once. Cells that failed or timed out before are measured again; those that ran out of memory
 * are not, because they would again. A folder that takes no more records, for example on a full disk, ends the sweep; a
 * later one goes on. Throws an ArgumentError, and a UsageError for a folder that cannot be used.
 */
export async function runSweep<
  Parameters,
  Cell extends JsonObject,
  Settings extends JsonObject,
  Result extends JsonObject,
>(
  benchmark: Benchmark<Parameters, Cell, Settings, Result>,
  options: SweepOptions<Parameters>,
): Promise<SweepOutcome> {
  checkBenchmark('runSweep', benchmark);
  checkArgument('runSweep', 'options', options, sweepOptions);
  const { observer = {}, signal, isCurrent = () => true, hasTimeFor = () => true } = options;
  const settings = benchmark.settings(options.parameters);
  checkArgument('runSweep', `settings of ${benchmark.name}`, settings, anyObject);
  const swept = benchmark.expand(options.parameters);
  checkArgument('runSweep', `expand of ${benchmark.name}`, swept, z.array(anyObject));
  const identity = sweepIdentity(benchmark.name, settings, options.environment);
  // A cell asked for twice, as by `--context 16,016`, is one.
  const byKey = new Map(swept.map((cell) => [cellKey(identity, cell), cell]));
  const cells = [...byKey].map(([key, cell]) => ({ cell, key }));
  const folder = openResultsFolder(options.out, identity, { forceNew: options.forceNew ?? false });
  const isShared = options.sharesProcess === true && options.environment.device.type === 'cuda';
  await using processes = new SharedProcess();
  try {
    const records = new Map(
      folder.earlier
        .filter((record) => isSettled(record) && isCurrent(record))
        .map((record) => [record.key, record]),
    );
    let writeError: ResultsFileError | null = null;
    observer.sweepStarted?.(cells.length, cells.filter(({ key }) => records.has(key)).length);
    const left = cells.flatMap(({ cell, key }) => (records.has(key) ? [] : [cell]));
    await compileAhead(
      left.flatMap((cell) => benchmark.flashAttention?.(cell, settings) ?? []),
      options.environment.device,
      {
        ...(signal ? { signal } : {}),
        onStatus: (text) => observer.preparing?.(text),
        onDone: (text) => observer.prepared?.(text),
      },
    );
    for (const [index, { cell, key }] of cells.entries()) {
      if (records.has(key)) continue;
      if (signal?.aborted || writeError !== null) break;
      if (!hasTimeFor(cell)) continue;
      observer.cellStarted?.(benchmark.describe(cell), index + 1);
      const goesOn = isShared && benchmark.sharesProcess?.(cell, settings) === true;
      const cellProcess = await processes.next(goesOn);
      const record = await measureCell(benchmark, { cell, key, settings, goesOn }, cellProcess, options);
      if (record === null) break;
      writeError = append(folder, record);
      records.set(key, record);
      observer.cellFinished?.(record);
    }
    return {
      records: cells.flatMap(({ key }) => records.get(key) ?? []),
      total: cells.length,
      interrupted: signal?.aborted ?? false,
      writeError,
    };
  } finally {
    folder.close();
  }
}

/** The error where the folder takes no more records; null where it took this one. */
function append(folder: ResultsFolder, record: CellRecord): ResultsFileError | null {
  try {
    folder.append(record);
    return null;
  } catch (error) {
    if (error instanceof ResultsFileError) return error;
    throw error;
  }
}

function isSettled(record: CellRecord): boolean {
  return record.status === 'ok' || record.status === 'out-of-memory';
}

type EndedCell = Exclude<CellOutcome, { status: 'interrupted' }>;
type ResultOf = { readonly name: string; readonly result: z.ZodType };

/** Null when the sweep was interrupted before the cell had its result. */
async function measureCell<Parameters>(
  benchmark: ResultOf,
  { cell, key, settings, goesOn }: { cell: JsonObject; key: string; settings: JsonObject; goesOn: boolean },
  cellProcess: CellProcess,
  { environment, ceilings, timeoutMs, signal, observer, task = benchmark.name }: SweepOptions<Parameters>,
): Promise<CellRecord | null> {
  const startedAt = new Date();
  const throttling = await watchThrottling(environment.device);
  const otherWork = watchOtherWork();
  const start = performance.now();
  const cellsBefore = cellProcess.jobsDone;
  const ended = await cellProcess.run(
    { task, parameters: cell, settings, deviceLabel: environment.device.label, goesOn },
    {
      timeoutMs: timeoutMs ?? null,
      ...(signal ? { signal } : {}),
      onProgress: ({ done, total, message }) => observer?.cellProgressed?.(done, total, message),
    },
  );
  const throttled = throttling();
  if (ended.status === 'interrupted') return null;
  const outcome = readBack(benchmark, ended);
  return {
    schemaVersion: SCHEMA_VERSION,
    benchmark: benchmark.name,
    key,
    status: outcome.status,
    parameters: cell,
    settings,
    environment,
    ceilings,
    startedAt: startedAt.toISOString(),
    durationMs: performance.now() - start,
    otherWork: otherWork(),
    throttling: throttled,
    ...(cellsBefore > 0 && { cellsBefore }),
    result: ended.status === 'ok' ? ended.result : null,
    error: outcome.status === 'ok' ? null : outcome.error,
  };
}

/** A result that could not be read back would keep its whole folder from being shown. */
function readBack({ name, result }: ResultOf, ended: EndedCell): EndedCell {
  if (ended.status !== 'ok') return ended;
  const { error } = result.safeParse(ended.result);
  if (!error) return ended;
  const message =
    `What the cell measured is no result of ${name} (${firstIssue('result', error)}). ` +
    'JSON has neither NaN nor infinity: both are null there.';
  return { status: 'failed', error: { name: 'ArgumentError', message } };
}
