import type { Arguments } from 'yargs';
import type { Command, Flag } from './command.ts';

type Filter = (onCompleted: (error: Error | null, completions: string[] | undefined) => void) => void;

/**
 * What tab completion offers: the values of the flag before the word, of its last item in a list between commas,
 * else the commands and flags that yargs knows.
 */
export function completeWords(commands: ReadonlyMap<string, Command>) {
  return (current: string, args: Arguments, byYargs: Filter, done: (completions: string[]) => void): void => {
    const flag = flagBefore(current, args, commands);
    if (flag?.completions) {
      void Promise.resolve(flag.completions()).then((values) => done(completeList(current, values)));
      return;
    }
    byYargs((_error, completions) => done(completions ?? []));
  };
}

/** `small,me` with `medium` among the values gives `small,medium`. */
export function completeList(current: string, values: readonly string[]): string[] {
  const comma = current.lastIndexOf(',');
  const [head, tail] = [current.slice(0, comma + 1), current.slice(comma + 1)];
  return values.filter((value) => value.startsWith(tail)).map((value) => head + value);
}

function flagBefore(
  current: string,
  args: Arguments,
  commands: ReadonlyMap<string, Command>,
): Flag | undefined {
  const words = process.argv.slice(process.argv.indexOf('--get-yargs-completions') + 1);
  const before = words.at(current === '' && words.at(-1) !== '' ? -1 : -2);
  const [, command] = [...commands].find(([name]) => args._.map(String).includes(name)) ?? [];
  return before?.startsWith('--') ? command?.flags[before.slice(2)] : undefined;
}
