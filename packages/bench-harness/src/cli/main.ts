import yargs, { type Argv, type Options } from 'yargs';
import { EXIT, UsageError } from '../errors.ts';
import { packageVersions } from '../records/package-versions.ts';
import { checkWords } from './check-words.ts';
import type { Command, CommandEntry, Flag } from './command.ts';
import { completeWords, COMPLETION_WORD } from './completion.ts';
import { single } from './option-values.ts';
import { tell } from './output.ts';
import { widthOf } from './terminal.ts';
import { NO_COMMAND, usageMessage } from './usage-message.ts';

/** Runs one of the commands and returns its exit code; see EXIT. */
export async function main(words: readonly string[], entries: readonly CommandEntry[]): Promise<number> {
  let exitCode: number = EXIT.ok;
  try {
    const commands = await loadNamed(words, entries);
    const entry = namedFirst(words, entries);
    if (entry !== undefined && words[0] !== COMPLETION_WORD)
      checkWords(words, entry, commands.get(entry.name)!.flags);
    await buildParser(words, { entries, commands }, (code) => (exitCode = code)).parseAsync();
    return exitCode;
  } catch (error) {
    // What is wrong with a line that is not finished would be printed into the prompt.
    return words[0] === COMPLETION_WORD ? EXIT.ok : explain(error);
  }
}

/** The commands by name. Those that no word names are listed in help, and never loaded. */
type LoadedCommands = ReadonlyMap<string, Command>;

async function loadNamed(
  words: readonly string[],
  entries: readonly CommandEntry[],
): Promise<LoadedCommands> {
  const named = entries.filter(({ name }) => words.includes(name));
  return new Map(await Promise.all(named.map(async ({ name, load }) => [name, await load()] as const)));
}

/** The command that is meant: others among the words may be folders. */
function namedFirst(words: readonly string[], entries: readonly CommandEntry[]): CommandEntry | undefined {
  const name = words.find((word) => entries.some((entry) => entry.name === word));
  return entries.find((entry) => entry.name === name);
}

function buildParser(
  words: readonly string[],
  { entries, commands }: { entries: readonly CommandEntry[]; commands: LoadedCommands },
  onExitCode: (code: number) => void,
): Argv {
  const meant = namedFirst(words, entries);
  const inWords = (message: string) =>
    usageMessage(message, {
      words,
      commandNames: entries.map((entry) => entry.name),
      entry: meant,
      flagNames: Object.keys(commands.get(meant?.name ?? '')?.flags ?? {}),
    });
  const parser = yargs([...words])
    .scriptName('roofline')
    .usage('$0 <command>\n\nTrain-step benchmarks of Transformers, every time next to the hardware ceiling.')
    .version(packageVersions()['@roofline/bench-harness']!)
    // A word of digits stays as it was written: it may be a folder's name, or an argument for a script.
    .parserConfiguration({ 'parse-positional-numbers': false })
    .strict()
    .demandCommand(1, NO_COMMAND)
    .completion(
      'completion',
      'Print the script for tab completion: roofline completion >> ~/.bashrc',
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
    .wrap(Math.min(110, widthOf(process.stdout)))
    .epilogue(
      'Exit codes: 0 all measured, 1 a failure, 2 wrong usage, 3 some cells ran out of memory, 130 interrupted.',
    );
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
      for (const [example, meaning] of command.examples) builder.example(example, meaning);
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

/** What a disk or a folder answers that takes no files: no fault of the program, whose stack says nothing. */
const STORAGE_CODES = new Set(['ENOSPC', 'EDQUOT', 'EFBIG', 'EROFS', 'EACCES', 'EPERM', 'EIO']);

/** Says what went wrong on stderr: usage errors and full disks in a line or two, anything else with its stack. */
function explain(error: unknown): number {
  if (error instanceof UsageError) {
    tell(`roofline: ${error.message}`);
    return EXIT.usage;
  }
  if (error instanceof Error && STORAGE_CODES.has((error as NodeJS.ErrnoException).code ?? '')) {
    tell(`roofline: ${error.message}. Make room, or choose another folder by --out.`);
    return EXIT.failure;
  }
  tell(error instanceof Error ? (error.stack ?? error.message) : String(error));
  return EXIT.failure;
}

function helpHint(meant: CommandEntry | undefined): string {
  return `Try \`${['roofline', meant?.name, '--help'].filter(Boolean).join(' ')}\`.`;
}
