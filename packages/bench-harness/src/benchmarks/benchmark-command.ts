import type { InferredOptionTypes } from 'yargs';
import type { Command, Flags } from '../cli/command.ts';
import { deviceFlag } from '../cli/flags/device-flag.ts';
import { sweepFlags, sweepOptions } from '../cli/flags/sweep-flags.ts';
import type { CellRecord } from '../records/record.ts';
import type { AnyBenchmark } from './definition.ts';
import type { RunOptions } from './run-benchmark.ts';

type Arguments<F extends Flags> = InferredOptionTypes<F & typeof deviceFlag & typeof sweepFlags> &
  Record<string, unknown>;

/** What a command asks its benchmark for; on another device than --device says, if it names one. */
type Plan = Pick<RunOptions, 'parameters' | 'dtypes'> & Partial<Pick<RunOptions, 'device'>>;

/** The command of a benchmark: what it has of its own. */
interface BenchmarkCommand<F extends Flags> extends Pick<Command, 'examples'> {
  /** Besides --device, unless that is among them, and those of every sweep. */
  readonly flags: F;
  /** The benchmark that is meant. */
  load(args: Arguments<F>): Promise<AnyBenchmark>;
  /** `out` is the folder of the records, which may not be there yet. */
  plan(args: Arguments<F>, out: string): Plan | Promise<Plan>;
  /** Called once the folder holds all records. */
  written?(records: readonly CellRecord[], out: string): Promise<void>;
}

/** A sweep that a line of words asks for. */
export interface AskedSweep {
  readonly benchmark: AnyBenchmark;
  readonly options: RunOptions;
  /** Called once the folder holds all records. */
  written(records: readonly CellRecord[]): Promise<void>;
}

/** A command that runs a sweep, and can be asked which one without running it. */
export interface SweepCommand extends Command {
  sweepOf(args: Parameters<Command['run']>[0]): Promise<AskedSweep>;
}

/** Whether a command is one of a sweep: those of `benchmarkCommand` are. */
export function isSweepCommand(command: Command): command is SweepCommand {
  return 'sweepOf' in command;
}

/** A command that runs the sweep of a benchmark, whose name may depend on the flags. */
export function benchmarkCommand<const F extends Flags>(
  name: string | ((args: Arguments<F>) => string),
  { flags, examples, load, plan, written }: BenchmarkCommand<F>,
): SweepCommand {
  const sweepOf: SweepCommand['sweepOf'] = async (words) => {
    const args = words as unknown as Arguments<F> & Arguments<Flags>;
    const options = sweepOptions(args, typeof name === 'string' ? name : name(args));
    const planned = await plan(args, options.out);
    return {
      benchmark: await load(args),
      options: { device: args.device, ...planned, ...options },
      written: async (records) => written?.(records, options.out),
    };
  };
  return {
    flags: { ...flags, device: flags['device'] ?? deviceFlag.device, ...sweepFlags },
    examples,
    sweepOf,
    async run(words) {
      const asked = await sweepOf(words);
      // Loaded only now: flags are read, and help is printed, without them.
      const { runBenchmark } = await import('./run-benchmark.ts');
      const { exitCode, records, isKept } = await runBenchmark(asked.benchmark, asked.options);
      if (isKept) await asked.written(records);
      return exitCode;
    },
  };
}
