import { EXIT, RankError, UsageError } from '../errors.ts';
import { checkWords } from './check-words.ts';
import type { CommandEntry } from './command.ts';
import { commandList, COMPLETION, COMPLETION_WORD, WIDEST_HELP } from './help.ts';
import { printLine, tell } from './output.ts';
import type { LoadedCommands } from './parser.ts';
import { widthOf } from './terminal.ts';

/** Runs one of the commands and returns its exit code; see EXIT. */
export async function main(words: readonly string[], entries: readonly CommandEntry[]): Promise<number> {
  try {
    const meant = namedFirst(words, entries);
    if (meant === undefined && asksForHelp(words)) {
      printLine(commandList(entries, Math.min(WIDEST_HELP, widthOf(process.stdout))));
      return EXIT.ok;
    }
    return await run(words, entries, meant);
  } catch (error) {
    // What is wrong with a line that is not finished would be printed into the prompt.
    return words[0] === COMPLETION_WORD ? EXIT.ok : await explain(error);
  }
}

async function run(
  words: readonly string[],
  entries: readonly CommandEntry[],
  meant: CommandEntry | undefined,
): Promise<number> {
  let exitCode: number = EXIT.ok;
  // The list of commands is printed without what reads words.
  const [{ buildParser }, commands] = await Promise.all([import('./parser.ts'), loadNamed(words, entries)]);
  if (meant !== undefined && words[0] !== COMPLETION_WORD)
    checkWords(words, meant, commands.get(meant.name)!.flags);
  await buildParser(words, { entries, commands, meant }, (code) => (exitCode = code)).parseAsync();
  return exitCode;
}

function asksForHelp(words: readonly string[]): boolean {
  const isOther = words[0] === COMPLETION_WORD || words.includes(COMPLETION[0]);
  return !isOther && words.some((word) => word === '--help' || word === '-h');
}

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

/** What a disk or a folder answers that takes no files: no fault of the program, whose stack says nothing. */
const STORAGE_CODES = new Set(['ENOSPC', 'EDQUOT', 'EFBIG', 'EROFS', 'EACCES', 'EPERM', 'EIO']);

/** Says what went wrong on stderr: usage errors and full disks in a line or two, a rank's by what it wrote last, anything else with its stack. */
async function explain(error: unknown): Promise<number> {
  // What wraps lines is not needed before something goes wrong.
  const { tellSentence } = await import('./print-sentence.ts');
  if (error instanceof UsageError) {
    tellSentence(`roofline: ${error.message}`);
    return EXIT.usage;
  }
  if (error instanceof RankError) {
    tell(`roofline: ${error.message}`);
    return EXIT.failure;
  }
  if (error instanceof Error && STORAGE_CODES.has((error as NodeJS.ErrnoException).code ?? '')) {
    tellSentence(`roofline: ${error.message}. Make room, or choose another folder by --out.`);
    return EXIT.failure;
  }
  tell(error instanceof Error ? (error.stack ?? error.message) : String(error));
  return EXIT.failure;
}
