import type { Command, CommandGroup } from '../cli/command.ts';
import type { AnyBenchmark } from './definition.ts';
import type { AnyTask } from '../runner/cell-task.ts';

/** `measure` of any task: its entry, not the compiler, sees to it that parameters and settings fit. */
type Measure = (cell: never, context: never) => unknown;

/** A benchmark by its name, loaded when it is needed. */
export interface BenchmarkEntry {
  /** That of its records, of its folder and, where it has one, of its command. */
  readonly name: string;
  /** Loads what `defineBenchmark` made. */
  definition(): Promise<AnyBenchmark>;
}

/**
 * What is known of a benchmark of the command before anything of it is loaded. Modules of entries import only types, so
 * that the command line starts fast and only a cell's own process opens a device.
 */
export interface BuiltInBenchmark extends BenchmarkEntry {
  /** Loads what its cells run in processes of their own, which is nothing that reports. */
  measure(): Promise<Measure>;
  readonly command?: {
    /** Its line of `roofline --help`. */
    readonly summary: string;
    /** `measure` if not given. */
    readonly group?: CommandGroup;
    load(): Promise<Command>;
  };
  /** Further work that it runs in processes of its own, by name. */
  readonly tasks?: Readonly<Record<string, () => Promise<AnyTask>>>;
}
