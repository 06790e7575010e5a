import type { Benchmark } from '../benchmarks/definition.ts';
import type { Ceilings } from '../measuring/ceilings.ts';
import type { JsonObject } from '../records/json.ts';
import type { Environment } from '../records/environment.ts';
import { cellKey, SCHEMA_VERSION, sweepIdentity, type CellRecord } from '../records/record.ts';
import { openResultsFolder } from '../records/results-folder.ts';
import { runCellProcess } from './cell-process.ts';

/** Told of what happens, for display only. */
export interface SweepObserver {
  /** `kept` of the `total` cells were measured before. */
  sweepStarted?(total: number, kept: number): void;
  /** `index` counts from 1 within all cells of the sweep. */
  cellStarted?(description: string, index: number): void;
  cellProgressed?(done: number, total: number, message?: string): void;
  cellFinished?(record: CellRecord): void;
}

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
}

export interface SweepOutcome {
  /** One record for each cell that has one, in the order of the sweep. */
  readonly records: readonly CellRecord[];
  readonly total: number;
  readonly interrupted: boolean;
}

/**
 * Measures every cell of a benchmark that the folder does not hold yet, each in a process of its own, and
 * appends each record at once. Cells that failed or timed out before are measured again; those that ran out
 * of memory are not, for they would again.
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
  const { observer = {}, signal } = options;
  const settings = benchmark.settings(options.parameters);
  const identity = sweepIdentity(benchmark.name, settings, options.environment);
  const cells = benchmark.expand(options.parameters).map((cell) => ({ cell, key: cellKey(identity, cell) }));
  const folder = openResultsFolder(options.out, identity, { forceNew: options.forceNew ?? false });
  try {
    const records = new Map(folder.earlier.filter(isSettled).map((record) => [record.key, record]));
    observer.sweepStarted?.(cells.length, cells.filter(({ key }) => records.has(key)).length);
    for (const [index, { cell, key }] of cells.entries()) {
      if (records.has(key)) continue;
      if (signal?.aborted) break;
      observer.cellStarted?.(benchmark.describe(cell), index + 1);
      const record = await measureCell(benchmark.name, { cell, key, settings }, options);
      if (record === null) break;
      folder.append(record);
      records.set(key, record);
      observer.cellFinished?.(record);
    }
    return {
      records: cells.flatMap(({ key }) => records.get(key) ?? []),
      total: cells.length,
      interrupted: signal?.aborted ?? false,
    };
  } finally {
    folder.close();
  }
}

function isSettled(record: CellRecord): boolean {
  return record.status === 'ok' || record.status === 'out-of-memory';
}

/** Null when the sweep was interrupted before the cell had its result. */
async function measureCell<Parameters>(
  benchmark: string,
  { cell, key, settings }: { cell: JsonObject; key: string; settings: JsonObject },
  { environment, ceilings, timeoutMs, signal, observer, task = benchmark }: SweepOptions<Parameters>,
): Promise<CellRecord | null> {
  const startedAt = new Date();
  const start = performance.now();
  const outcome = await runCellProcess(
    { task, parameters: cell, settings, deviceLabel: environment.device.label },
    {
      timeoutMs: timeoutMs ?? null,
      ...(signal ? { signal } : {}),
      onProgress: ({ done, total, message }) => observer?.cellProgressed?.(done, total, message),
    },
  );
  if (outcome.status === 'interrupted') return null;
  return {
    schemaVersion: SCHEMA_VERSION,
    benchmark,
    key,
    status: outcome.status,
    parameters: cell,
    settings,
    environment,
    ceilings,
    startedAt: startedAt.toISOString(),
    durationMs: performance.now() - start,
    result: outcome.status === 'ok' ? outcome.result : null,
    error: outcome.status === 'ok' ? null : outcome.error,
  };
}
