import yargs, { type Argv, type Options } from 'yargs';
import { UsageError } from '../errors.ts';
import { packageVersions } from '../records/package-versions.ts';
import type { Command, CommandEntry, Flag } from './command.ts';
import { completeWords } from './completion.ts';
import { COMPLETION, EXIT_CODES, WIDEST_HELP } from './help.ts';
import { lineAsCalled } from './invocation.ts';
import { single } from './option-values.ts';
import { widthOf } from './terminal.ts';
import { NO_COMMAND, usageMessage } from './usage-message.ts';

/** The commands by name. Those that no word names are listed in help, and never loaded. */
export type LoadedCommands = ReadonlyMap<string, Command>;

/** What the words are read against. */
export interface Known {
  readonly entries: readonly CommandEntry[];
  readonly commands: LoadedCommands;
  /** The command that the words mean, if any. */
  readonly meant: CommandEntry | undefined;
}

/** Reads the words, and runs the command that they mean. */
export function buildParser(
  words: readonly string[],
  { entries, commands, meant }: Known,
  onExitCode: (code: number) => void,
): Argv {
  const inWords = (message: string) =>
    usageMessage(message, {
      words,
      commandNames: entries.map((entry) => entry.name),
      entry: meant,
      flagNames: Object.keys(commands.get(meant?.name ?? '')?.flags ?? {}),
    });
  const parser = yargs([...words])
    .scriptName('roofline')
    .version(packageVersions()['@roofline/bench-harness']!)
    // A word of digits stays as it was written: it may be a folder's name, or an argument for a script.
    .parserConfiguration({ 'parse-positional-numbers': false })
    .strict()
    .demandCommand(1, NO_COMMAND)
    .completion(
      ...COMPLETION,
      completeWords(commands, (name) => entries.some((entry) => entry.name === name && entry.positionals)),
    )
    .alias({ help: 'h', version: 'V' })
    // Messages are in one language, whatever the locale.
    .locale('en')
    .exitProcess(false)
    .fail((message, error) => {
      // A message is what yargs found wrong; without one, a command threw.
      throw message === null ? error : new UsageError(`${inWords(message)}\n${helpHint(meant)}`);
    })
    .wrap(Math.min(WIDEST_HELP, widthOf(process.stdout)))
    .epilogue(EXIT_CODES);
  for (const entry of entries) addCommand(parser, entry, commands.get(entry.name), onExitCode);
  return parser;
}

function addCommand(
  parser: Argv,
  { name, positionals, summary }: CommandEntry,
  command: Command | undefined,
  onExitCode: (code: number) => void,
): void {
  const line = [name, positionals].filter(Boolean).join(' ');
  if (command === undefined) {
    parser.command(line, summary);
    return;
  }
  parser.command(
    line,
    summary,
    (builder) => {
      for (const [example, meaning] of command.examples) builder.example(lineAsCalled(example), meaning);
      for (const [name, flag] of Object.entries(command.flags))
        builder.option(name, yargsOptions(name, flag));
      return builder;
    },
    async (args) => onExitCode(await command.run(args)),
  );
}

/** A flag as yargs takes it. Given twice, one that takes a single value is a usage error. */
function yargsOptions(name: string, flag: Flag): Options {
  const { completions: _, values, ...options } = flag;
  return {
    coerce: (given: string | readonly string[]) => single(name, given),
    ...(options.type === 'string' && { requiresArg: true }),
    ...(values && { choices: values }),
    ...options,
  };
}

function helpHint(meant: CommandEntry | undefined): string {
  return `Try \`${['roofline', meant?.name, '--help'].filter(Boolean).join(' ')}\`.`;
}
