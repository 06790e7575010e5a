import type { Benchmark } from '../benchmarks/definition.ts';
import type { BenchmarkDType } from '../measuring/ceilings.ts';
import { prepareDevice } from '../device/prepare-device.ts';
import { EXIT } from '../errors.ts';
import type { JsonObject } from '../records/json.ts';
import type { DeviceDescription } from '../records/environment.ts';
import { makeWritable } from '../records/results-folder.ts';
import type { CellRecord } from '../records/record.ts';
import { runSweep } from '../runner/sweep.ts';
import { exitCodeOf, type OutOfMemoryPolicy } from './exit-code.ts';
import { watchInterruption } from './interruption.ts';
import { printJson, tell } from './output.ts';
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
  makeWritable(options.out);
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
    return { exitCode: EXIT.interrupted, records: [] };
  }

  const { environment, ceilings } = prepared;
  const { records, total, interrupted } = await runSweep(benchmark, {
    ...options,
    parameters: benchmark.parameters.parse(options.parameters(environment.device)),
    environment,
    ceilings,
    signal,
    observer: progress,
  });
  progress.clear();
  if (records.length > 0 || options.json) printRecords(benchmark, records, options, interrupted);
  tell(interrupted ? howToResume(options.out, records.length, total) : howToReport(options.out));
  return { exitCode: interrupted ? EXIT.interrupted : exitCodeOf(records, options.outOfMemory), records };
}

function howToResume(out: string, kept: number, total: number): string {
  return (
    `Interrupted: ${kept} of ${total} cells are kept in ${out}. ` +
    `Run the same command with --out ${out} to measure the rest.`
  );
}

function howToReport(out: string): string {
  return `Records are in ${out}; \`roofline report ${out}\` makes tables, plots and a page of them.`;
}

function printRecords(
  benchmark: Pick<Benchmark<never, never, never, never>, 'name' | 'toTable'>,
  records: readonly CellRecord[],
  { json, out }: { json: boolean; out: string },
  interrupted: boolean,
): void {
  const table = benchmark.toTable(records);
  if (!json) {
    printTable(table);
    return;
  }
  const [first] = records;
  printJson({
    benchmark: benchmark.name,
    out,
    interrupted,
    environment: first?.environment ?? null,
    ceilings: first?.ceilings ?? null,
    settings: first?.settings ?? null,
    rows: table.rows,
  });
}
