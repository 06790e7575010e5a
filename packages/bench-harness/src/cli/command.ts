import type { InferredOptionTypes, Options } from 'yargs';

export interface Flag extends Options {
  /** The only values; help shows them, and completion offers them. */
  readonly values?: readonly string[];
  /** Some of many values, for completion. */
  readonly completions?: () => readonly string[] | Promise<readonly string[]>;
}
export type Flags = Readonly<Record<string, Flag>>;

/** One sub-command of `roofline`. */
export interface Command<F extends Flags = Flags> {
  readonly flags: F;
  readonly examples: readonly (readonly [command: string, meaning: string])[];
  /** Returns the exit code. */
  run(args: InferredOptionTypes<F> & Record<string, unknown>): Promise<number>;
}

/** The groups of `roofline --help`, in its order. */
export const commandGroups = {
  start: 'Start here',
  train: 'Train',
  measure: 'Measure',
  look: 'Look',
  check: 'Check',
  'set-up': 'Set up',
} as const;
export type CommandGroup = keyof typeof commandGroups;

/** What is known of a command before it is loaded: only the one that is asked for is. */
export interface CommandEntry {
  readonly name: string;
  /** Words after the name as yargs reads them, such as `<folders..>`; their values arrive in the arguments. */
  readonly positionals?: string;
  readonly summary: string;
  readonly group: CommandGroup;
  /** Whether the words after `--` are for another program, which it starts. */
  readonly handsWordsOn?: boolean;
  load(): Promise<Command>;
}

/** Infers the types of the arguments from the flags. */
export function defineCommand<const F extends Flags>(command: Command<F>): Command {
  return command as unknown as Command;
}

/** The flag that every command has. */
export const jsonFlag = {
  json: { type: 'boolean', default: false, describe: 'Print JSON to stdout, and nothing else' },
} as const satisfies Flags;
