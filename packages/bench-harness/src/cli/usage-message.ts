import { nearestOf } from '@roofline/cuda/host';
import type { CommandEntry } from './command.ts';

/** What the command line is checked against. */
export interface UsageContext {
  readonly words: readonly string[];
  readonly commandNames: readonly string[];
  /** The command that the words name, if any, and its flags. */
  readonly entry: CommandEntry | undefined;
  readonly flagNames: readonly string[];
}

export const NO_COMMAND = 'Name a command; `roofline --help` lists them.';

/** What yargs found wrong, in the words that every message of the command has. */
export function usageMessage(found: string, context: UsageContext): string {
  const { entry, words } = context;
  // Before the command is known, yargs does not know that --json takes no value.
  if (found === NO_COMMAND && entry !== undefined)
    return `Name the command first: \`roofline ${entry.name} ${words[0]}\`.`;
  const [, unknown] = /^Unknown (?:arguments?|commands?): (.*)$/.exec(found) ?? [];
  if (unknown !== undefined)
    return unknown
      .split(', ')
      .filter((name, _, names) => !isCamelCaseOfOther(name, names))
      .map((name) => unknownWord(name, context))
      .join(' ');
  const [, missing] = /^Missing required arguments?: (.*)$/.exec(found) ?? [];
  if (missing !== undefined) return `${flagged(missing.split(', ')).join(' and ')} is needed.`;
  const [, valueless] = /^Not enough arguments following: (.*)$/.exec(found) ?? [];
  if (valueless !== undefined) return `${flagged([valueless])[0]} wants a value.`;
  if (found.startsWith('Not enough non-option') && entry !== undefined) {
    return `\`roofline ${entry.name}\` wants ${entry.positionals}.`;
  }
  return found;
}

/** `batchSize`, which yargs finds as well where `--batch-size` was given. */
function isCamelCaseOfOther(name: string, names: readonly string[]): boolean {
  const kebab = name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return kebab !== name && names.includes(kebab);
}

/** A flag or a word that the command does not have. */
function unknownWord(name: string, { words, commandNames, entry, flagNames }: UsageContext): string {
  const isFlag = words.some((word) => word.startsWith('-') && word.replace(/^-+(no-)?/, '').startsWith(name));
  const nearest = nearestOf(name, isFlag ? flagNames : entry === undefined ? commandNames : []);
  const question = nearest === null ? '' : ` Did you mean ${isFlag ? `--${nearest}` : nearest}?`;
  if (isFlag) return `Unknown option ${flagged([name])[0]}.${question}`;
  return entry === undefined
    ? `Unknown command '${name}'.${question}`
    : `\`roofline ${entry.name}\` takes no word '${name}'.${question}`;
}

function flagged(names: readonly string[]): string[] {
  return names.map((name) => (name.length === 1 ? `-${name}` : `--${name}`));
}
