import type { AnyBenchmark } from '../benchmarks/definition.ts';
import { prepareDevice, type PreparedDevice } from '../device/prepare-device.ts';
import { ResultsFileError, UsageError } from '../errors.ts';
import { isOfThisCode } from '../records/git-state.ts';
import type { CellRecord } from '../records/record.ts';
import { runSweep, type SweepObserver } from '../runner/sweep.ts';
import { afterMs } from '../runner/timer.ts';
import { askedSweep } from './asked-sweep.ts';
import { expectedCellMs, type PlannedRun } from './planned-runs.ts';

/** How a study is measured. */
export interface MeasureOptions {
  /** When measuring has to end, by `performance.now()`; Infinity for none. */
  readonly untilMs: number;
  /** Whether records of other code are measured again. */
  readonly fresh: boolean;
  /** Aborts on Ctrl-C. */
  readonly signal: AbortSignal;
  readonly observer: SweepObserver;
  /** Called before the first cell of a run. */
  readonly onRun: (planned: PlannedRun) => void;
  /** Called with why the folder of a run takes no cells, as where another machine has measured some of them. */
  readonly onRefused: (planned: PlannedRun, why: string) => void;
  /** What goes on before. */
  readonly onStatus: (text: string, done?: number, total?: number) => void;
}

/** The cells of a run that are to be measured. */
export function cellsLeft({ cells }: PlannedRun, fresh: boolean): PlannedRun['cells'] {
  return cells.filter(({ isSettled, isOlder }) => !isSettled || (fresh && isOlder));
}

/**
 * Measures what is missing of these runs, the most wanted first, as long as there is time: a cell begins only if it is
 * expected to end in time, and one that does not is given up. Throws the ResultsFileError of a folder that takes no more records.
 */
export async function measureRuns(runs: readonly PlannedRun[], options: MeasureOptions): Promise<void> {
  const devices = new Map<string, PreparedDevice>();
  const left = (ms: number) => options.untilMs - performance.now() >= ms;
  const time = timeSignal(options.untilMs);
  const signal = AbortSignal.any([options.signal, time.signal]);
  try {
    for (const planned of runs.toSorted((a, b) => a.run.wanted - b.run.wanted)) {
      if (signal.aborted) return;
      if (cellsLeft(planned, options.fresh).length === 0 || !left(expectedCellMs(planned))) continue;
      options.onRun(planned);
      await measureUnlessRefused(planned, { ...options, signal }, devices);
    }
  } finally {
    time.clear();
  }
}

/** Aborts when the time is up; never where there is no end. */
function timeSignal(untilMs: number): { signal: AbortSignal; clear(): void } {
  const controller = new AbortController();
  if (untilMs === Infinity) return { signal: controller.signal, clear: () => {} };
  const leftMs = Math.max(0, untilMs - performance.now());
  return { signal: controller.signal, clear: afterMs(leftMs, () => controller.abort()) };
}

/** A folder that is not as it has to be says nothing of the others. */
async function measureUnlessRefused(
  planned: PlannedRun,
  options: MeasureOptions,
  devices: Map<string, PreparedDevice>,
): Promise<void> {
  try {
    await measureRun(planned, options, devices);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    options.onRefused(planned, error.message);
  }
}

async function measureRun(
  planned: PlannedRun,
  { untilMs, fresh, signal, observer, onStatus }: MeasureOptions,
  devices: Map<string, PreparedDevice>,
): Promise<void> {
  // Asked for anew: what a command prepares for its cells, as where snapshots go, is that of the run that comes next.
  const { benchmark, options, written } = await askedSweep([...planned.words, '--out', planned.out]);
  const { device, dtypes, parameters } = options;
  const key = JSON.stringify([device, dtypes]);
  const prepared = devices.get(key) ?? (await prepareDevice(device, dtypes, { signal, onStatus }));
  if (prepared === null) return;
  devices.set(key, prepared);
  const records: CellRecord[] = [...planned.records];
  const outcome = await runSweep(benchmark as AnyBenchmark, {
    parameters: benchmark.parameters.parse(parameters(prepared.environment.device)),
    ...prepared,
    ...{ out: planned.out, signal, sharesProcess: true },
    observer: {
      ...forwarded(observer),
      cellFinished(record) {
        records.push(record);
        observer.cellFinished?.(record);
      },
    },
    isCurrent: (record) => !fresh || isOfThisCode(record.environment.git),
    // Sweeps begin with their cheap cells: the next one takes as long as the last at least.
    hasTimeFor: () => {
      const lastMs = records.at(-1)?.durationMs ?? 0;
      return performance.now() + Math.max(lastMs, expectedCellMs({ ...planned, records })) <= untilMs;
    },
  });
  if (outcome.writeError instanceof ResultsFileError) throw outcome.writeError;
  if (outcome.records.length > 0) await written(outcome.records);
}

/** The methods of an observer, which may be those of a class. */
function forwarded(observer: SweepObserver): SweepObserver {
  return {
    sweepStarted: (...args) => observer.sweepStarted?.(...args),
    preparing: (text) => observer.preparing?.(text),
    prepared: (text) => observer.prepared?.(text),
    cellStarted: (...args) => observer.cellStarted?.(...args),
    cellProgressed: (...args) => observer.cellProgressed?.(...args),
  };
}
