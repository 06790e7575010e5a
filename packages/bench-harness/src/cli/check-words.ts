import { UsageError } from '../errors.ts';
import type { CommandEntry, Flags } from './command.ts';

/**
 * Throws a UsageError for what yargs would silently ignore: words after `--`, which only a command that hands them on
 * takes; a switch with a value that it cannot have, `--json=yes`, which it reads as `--no-json`; and `--no-size`, where
 * --size takes a value.
 */
export function checkWords(words: readonly string[], entry: CommandEntry, flags: Flags): void {
  const dashes = words.indexOf('--');
  const [own, after] = dashes < 0 ? [words, []] : [words.slice(0, dashes), words.slice(dashes + 1)];
  if (after.length > 0 && !entry.handsWordsOn) {
    throw new UsageError(`\`roofline ${entry.name}\` takes no words after --: leave out the --.`);
  }
  for (const word of own) {
    const [, name = '', value] = /^--([^=]+)=?(.*)$/s.exec(word) ?? [];
    if (flagOf(name, flags)?.type === 'boolean' && word.includes('=') && !isTruth(value)) {
      throw new UsageError(
        `--${name} is a switch: it stands alone, or as --no-${name}, not with '${value}'.`,
      );
    }
    const negated = name.replace(/^no-/, '');
    if (negated !== name && flagOf(negated, flags)?.type === 'string') {
      throw new UsageError(`--${negated} wants a value; leave it out in place of --${name}.`);
    }
  }
}

function flagOf(name: string, flags: Flags): Flags[string] | undefined {
  return Object.hasOwn(flags, name) ? flags[name] : undefined;
}

function isTruth(value: string | undefined): boolean {
  return value === 'true' || value === 'false';
}
