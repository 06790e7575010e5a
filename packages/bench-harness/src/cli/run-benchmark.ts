import type { Benchmark } from '../benchmarks/definition.ts';
import type { BenchmarkDType } from '../measuring/ceilings.ts';
import { prepareDevice } from '../device/prepare-device.ts';
import { EXIT, type ResultsFileError, UsageError } from '../errors.ts';
import type { JsonObject } from '../records/json.ts';
import type { DeviceDescription } from '../records/environment.ts';
import { checkWritable } from '../records/results-folder.ts';
import type { CellRecord } from '../records/record.ts';
import { shellWord } from '../shell-word.ts';
import { busyMachineText } from '../report/busy-machine.ts';
import { throttledClocksNotes } from '../report/throttled-clocks.ts';
import { runSweep, type SweepOutcome } from '../runner/sweep.ts';
import { checkExecutions } from './check-executions.ts';
import { exitCodeOf, type OutOfMemoryPolicy } from './exit-code.ts';
import { watchInterruption } from './interruption.ts';
import { printJson, printLine, tell } from './output.ts';
import { printTable } from './print-table.ts';
import { ProgressDisplay } from './progress.ts';

export interface RunOptions<Parameters> {
  /** May depend on the device that was found. */
  readonly parameters: (device: DeviceDescription) => Parameters;
  /** As given by --device: `auto`, `cpu`, `cuda`, `cuda:1`. */
  readonly device: string;
  /** Dtypes whose matrix-product ceilings the rows need; none for rows without a roof. */
  readonly dtypes: readonly BenchmarkDType[];
  readonly out: string;
  readonly forceNew: boolean;
  readonly timeoutMs: number | null;
  readonly outOfMemory: OutOfMemoryPolicy;
  readonly json: boolean;
}

export interface RunOutcome {
  readonly exitCode: number;
  readonly records: readonly CellRecord[];
  /** Whether the folder holds all of them, and takes more files. */
  readonly isKept: boolean;
}

/** Runs a sweep for the command line: device, ceilings, progress, Ctrl-C, table or JSON, exit code. */
export async function runBenchmark<
  Parameters,
  Cell extends JsonObject,
  Settings extends JsonObject,
  Result extends JsonObject,
>(
  benchmark: Benchmark<Parameters, Cell, Settings, Result>,
  options: RunOptions<Parameters>,
): Promise<RunOutcome> {
  checkWritable(options.out);
  using interruption = watchInterruption();
  const { signal } = interruption;
  const progress = new ProgressDisplay();
  const prepared = await prepareDevice(options.device, options.dtypes, {
    signal,
    onStatus: (text) => progress.status(text),
  });
  progress.clear();
  if (prepared === null) {
    tell('Interrupted before anything was measured.');
    return { exitCode: EXIT.interrupted, records: [], isKept: true };
  }

  const { environment, ceilings } = prepared;
  const parameters = benchmark.parameters.parse(options.parameters(environment.device));
  checkExecutions(parameters, environment.device);
  if (benchmark.expand(parameters).length === 0) {
    throw new UsageError('These options leave nothing to measure: no cell has all of them. Try others.');
  }
  const { out, forceNew, timeoutMs } = options;
  const { records, total, interrupted, writeError } = await runSweep(benchmark, {
    out,
    forceNew,
    timeoutMs,
    parameters,
    environment,
    ceilings,
    signal,
    observer: progress,
  });
  progress.clear();
  if (records.length > 0 || options.json)
    printRecords(benchmark, records, options, { interrupted, writeError });
  if (writeError !== null) {
    tell(howToGoOn(writeError, options, records.length, total));
    return { exitCode: EXIT.failure, records, isKept: false };
  }
  tell(interrupted ? howToResume(options, records.length, total) : howToReport(out));
  const exitCode = interrupted ? EXIT.interrupted : exitCodeOf(records, options.outOfMemory);
  return { exitCode, records, isKept: true };
}

type Place = Pick<RunOptions<never>, 'out' | 'forceNew'>;

function howToGoOn({ message }: ResultsFileError, place: Place, measured: number, total: number): string {
  return (
    `Stopped after ${measured} of ${total} cells: ${message} The last of them is in the table alone. ` +
    `Make room or put the folder back, and ${sameCommand(place)} to measure the rest.`
  );
}

function howToResume(place: Place, kept: number, total: number): string {
  return `Interrupted: ${kept} of ${total} cells are kept in ${place.out}. To measure the rest, ${sameCommand(place)}.`;
}

/** With --force-new it would begin once more. */
function sameCommand({ out, forceNew }: Place): string {
  return `run the same command ${forceNew ? 'without --force-new, and ' : ''}with --out ${shellWord(out)}`;
}

function howToReport(out: string): string {
  return `Records are in ${out}; \`roofline report ${shellWord(out)}\` makes tables, plots and a page of them.`;
}

function printRecords<Cell extends JsonObject>(
  benchmark: Pick<Benchmark<never, Cell, never, never>, 'name' | 'toTable' | 'describe' | 'cellOf'>,
  records: readonly CellRecord[],
  { json, out }: { json: boolean; out: string },
  { interrupted, writeError }: Pick<SweepOutcome, 'interrupted' | 'writeError'>,
): void {
  const table = benchmark.toTable(records);
  const describe = (record: CellRecord) => benchmark.describe(benchmark.cellOf(record));
  const busyMachine = busyMachineText(records, describe);
  const throttledClocks = throttledClocksNotes(records, describe).map(({ text }) => text);
  if (!json) {
    printTable(table);
    if (busyMachine !== null) printLine(busyMachine);
    for (const text of throttledClocks) printLine(text);
    return;
  }
  const [first] = records;
  printJson({
    benchmark: benchmark.name,
    out,
    interrupted,
    writeError: writeError?.message ?? null,
    environment: first?.environment ?? null,
    ceilings: first?.ceilings ?? null,
    settings: first?.settings ?? null,
    busyMachine,
    throttledClocks,
    rows: table.rows,
  });
}
