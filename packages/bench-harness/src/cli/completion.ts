import type { Arguments } from 'yargs';
import type { Command, Flag } from './command.ts';
import { COMPLETION_WORD } from './help.ts';

type Filter = (onCompleted: (error: Error | null, completions: string[] | undefined) => void) => void;

/**
 * What tab completion offers: the values of the flag before the word, of its last item in a list between commas;
 * nothing, so that the shell offers files, for other values and for the words of a command that takes some; else the
 * commands and flags that yargs knows.
 */
export function completeWords(commands: ReadonlyMap<string, Command>, namesFiles: (name: string) => boolean) {
  return (current: string, args: Arguments, byYargs: Filter, done: (completions: string[]) => void): void => {
    const [name, command] = [...commands].find(([each]) => args._.map(String).includes(each)) ?? [];
    const flag = flagBefore(current, command);
    if (flag !== undefined && flag.type !== 'boolean') {
      void valuesOf(flag).then((values) => done(completeList(current, values)));
    } else if (name !== undefined && namesFiles(name) && !current.startsWith('-')) done([]);
    else byYargs((_error, completions) => done(completions ?? []));
  };
}

async function valuesOf({ values, completions }: Flag): Promise<readonly string[]> {
  return values ?? (await completions?.()) ?? [];
}

/** `small,me` with `medium` among the values gives `small,medium`. */
export function completeList(current: string, values: readonly string[]): string[] {
  const comma = current.lastIndexOf(',');
  const [head, tail] = [current.slice(0, comma + 1), current.slice(comma + 1)];
  return values.filter((value) => value.startsWith(tail)).map((value) => head + value);
}

function flagBefore(current: string, command: Command | undefined): Flag | undefined {
  const words = process.argv.slice(process.argv.indexOf(COMPLETION_WORD) + 1);
  const before = words.at(current === '' && words.at(-1) !== '' ? -1 : -2);
  return before?.startsWith('--') ? command?.flags[before.slice(2)] : undefined;
}
