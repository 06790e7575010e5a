import type { Benchmark } from './definition.ts';
import type { BenchmarkDType } from '../measuring/ceilings.ts';
import { prepareDevice } from '../device/prepare-device.ts';
import { EXIT, type ResultsFileError, UsageError } from '../errors.ts';
import type { JsonObject } from '../records/json.ts';
import type { DeviceDescription } from '../records/environment.ts';
import { checkWritable } from '../records/results-folder.ts';
import type { CellRecord } from '../records/record.ts';
import { shellWord } from '../shell-word.ts';
import { busyMachineNotes, throttledClocksNotes } from '../report/disturbances.ts';
import { runSweep, type SweepOutcome } from '../runner/sweep.ts';
import { exitCodeOf, type SweepOptions } from '../cli/flags/sweep-flags.ts';
import { watchInterruption } from '../cli/interruption.ts';
import { printJson, tell } from '../cli/output.ts';
import { printProse, printSentence, tellSentence } from '../cli/print-sentence.ts';
import { printTable } from '../cli/print-table.ts';
import { ProgressDisplay } from '../cli/progress.ts';
import type { Execution } from '../execution/kinds.ts';

export interface RunOptions extends SweepOptions {
  /** As the benchmark's schema takes them; they may depend on the device that was found. */
  readonly parameters: (device: DeviceDescription) => Readonly<Record<string, unknown>>;
  /** As given by --device: `auto`, `cpu`, `cuda`, `cuda:1`. */
  readonly device: string;
  /** Dtypes whose matrix-product ceilings the rows need besides that of copies; null for rows without a roof. */
  readonly dtypes: readonly BenchmarkDType[] | null;
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
>(benchmark: Benchmark<Parameters, Cell, Settings, Result>, options: RunOptions): Promise<RunOutcome> {
  checkWritable(options.out);
  using interruption = watchInterruption();
  const { signal } = interruption;
  using progress = new ProgressDisplay();
  const prepared = await prepareDevice(options.device, options.dtypes, {
    signal,
    onStatus: (...status) => progress.status(...status),
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
    tellSentence(howToGoOn(writeError, options, records.length, total));
    return { exitCode: EXIT.failure, records, isKept: false };
  }
  tellSentence(interrupted ? howToResume(options, records.length, total) : howToReport(out));
  const exitCode = interrupted ? EXIT.interrupted : exitCodeOf(records, options.outOfMemory);
  return { exitCode, records, isKept: true };
}

type Place = Pick<RunOptions, 'out' | 'forceNew'>;

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
  benchmark: Pick<
    Benchmark<never, Cell, never, never>,
    'name' | 'toTable' | 'toOverview' | 'describe' | 'cellOf'
  >,
  records: readonly CellRecord[],
  { json, out }: { json: boolean; out: string },
  { interrupted, writeError }: Pick<SweepOutcome, 'interrupted' | 'writeError'>,
): void {
  const table = benchmark.toTable(records);
  const describe = (record: CellRecord) => benchmark.describe(benchmark.cellOf(record));
  const busyMachine = busyMachineNotes(records, describe)[0]?.text ?? null;
  const throttledClocks = throttledClocksNotes(records, describe).map(({ text }) => text);
  const { tables, notes, findings } = benchmark.toOverview(records);
  if (!json) {
    printTable(table);
    if (busyMachine !== null) printSentence(busyMachine);
    for (const text of throttledClocks) printSentence(text);
    for (const each of tables) printTable(each);
    for (const sentence of new Set([...notes, ...findings])) printProse(sentence);
    return;
  }
  for (const note of notes) tellSentence(note);
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

/** Throws a UsageError for a way to run that the device does not have; its rows would be named after what did not run. */
function checkExecutions(parameters: unknown, { type, label }: DeviceDescription): void {
  const { execution } = parameters as { execution?: readonly Execution[] };
  if (type === 'cuda' || !execution?.includes('autotuned')) return;
  throw new UsageError(
    `--execution autotuned times the algorithms that a GPU has for each matrix product, and the device is ${label}: ` +
      'take compiled there.',
  );
}
