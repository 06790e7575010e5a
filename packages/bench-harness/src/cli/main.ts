import yargs, { type Argv, type Options } from 'yargs';
import { commands } from '../commands/all.ts';
import { EXIT, UsageError } from '../errors.ts';
import { packageVersions } from '../records/environment.ts';
import type { Command } from './command.ts';
import { completeWords } from './completion.ts';
import { nearest } from './nearest.ts';
import { tell } from './output.ts';

/** Runs the command line and returns its exit code; see EXIT. */
export async function main(words: readonly string[]): Promise<number> {
  let exitCode: number = EXIT.ok;
  const parser = buildParser(words, (code) => (exitCode = code));
  try {
    await parser.parseAsync();
    return exitCode;
  } catch (error) {
    return explain(error);
  }
}

function buildParser(words: readonly string[], onExitCode: (code: number) => void): Argv {
  const parser = yargs([...words])
    .scriptName('roofline')
    .usage('$0 <command>\n\nTrain-step benchmarks of Transformers, every time beside the hardware ceiling.')
    .version(packageVersions()['@roofline/bench-harness']!)
    .strict()
    .demandCommand(1, 'Name a command; `roofline --help` lists them.')
    .recommendCommands()
    .completion(
      'completion',
      'Print the script for tab completion: roofline completion >> ~/.bashrc',
      completeWords,
    )
    .exitProcess(false)
    .fail((message, error) => {
      // A message is what yargs found wrong; without one, a command threw.
      throw message === null
        ? error
        : new UsageError(`${message}${suggestFlag(message, words)}\n${helpHint(words)}`);
    })
    .wrap(Math.min(110, process.stdout.columns ?? 110))
    .epilogue('Exit codes: 0 all measured, 1 a failure, 2 wrong usage, 3 some cells ran out of memory.');
  for (const command of commands) addCommand(parser, command, onExitCode);
  return parser;
}

function addCommand(parser: Argv, command: Command, onExitCode: (code: number) => void): void {
  parser.command(
    [command.name, command.positionals].filter(Boolean).join(' '),
    command.summary,
    (builder) => {
      for (const [example, meaning] of command.examples) builder.example(example, meaning);
      for (const [name, { completions: _, ...options }] of Object.entries(command.flags)) {
        builder.option(name, options as Options);
      }
      return builder;
    },
    async (args) => onExitCode(await command.run(args as Parameters<typeof command.run>[0])),
  );
}

/** Tells what went wrong on stderr: usage errors in a line or two, anything else with its stack. */
function explain(error: unknown): number {
  if (error instanceof UsageError) {
    tell(`roofline: ${error.message}`);
    return EXIT.usage;
  }
  tell(error instanceof Error ? (error.stack ?? error.message) : String(error));
  return EXIT.failure;
}

function helpHint(words: readonly string[]): string {
  return `Try \`${['roofline', commandIn(words)?.name, '--help'].filter(Boolean).join(' ')}\`.`;
}

function suggestFlag(message: string, words: readonly string[]): string {
  const unknown = /^Unknown arguments?: ([\w-]+)/.exec(message)?.[1];
  const command = commandIn(words);
  if (unknown === undefined || command === undefined) return '';
  const suggestion = nearest(unknown, Object.keys(command.flags));
  return suggestion === undefined ? '' : `. Did you mean --${suggestion}?`;
}

function commandIn(words: readonly string[]): Command | undefined {
  return commands.find(({ name }) => words.includes(name));
}
