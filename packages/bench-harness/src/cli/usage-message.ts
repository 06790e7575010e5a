import { nearestOf } from '@roofline/tensor-core/nearest';
import type { CommandEntry } from './command.ts';

/** What the command line is checked against. */
export interface UsageContext {
  readonly words: readonly string[];
  readonly commandNames: readonly string[];
  /** The command that the words name, if any, and its flags. */
  readonly entry: CommandEntry | undefined;
  readonly flagNames: readonly string[];
}

/** What yargs found wrong, in the words that every message of the command has. */
export function usageMessage(found: string, context: UsageContext): string {
  const { entry } = context;
  const [, unknown] = /^Unknown (?:arguments?|commands?): (.*)$/.exec(found) ?? [];
  if (unknown !== undefined)
    return unknown
      .split(', ')
      .map((name) => unknownWord(name, context))
      .join(' ');
  const [, suggestion] = /^Did you mean (.*)\?$/.exec(found) ?? [];
  if (suggestion !== undefined) {
    const given = context.words.find((word) => !word.startsWith('-')) ?? '';
    return `Unknown command '${given}'. Did you mean ${suggestion}?`;
  }
  const [, missing] = /^Missing required arguments?: (.*)$/.exec(found) ?? [];
  if (missing !== undefined) return `${flagged(missing.split(', ')).join(' and ')} is needed.`;
  const [, valueless] = /^Not enough arguments following: (.*)$/.exec(found) ?? [];
  if (valueless !== undefined) return `${flagged([valueless])[0]} wants a value.`;
  if (found.startsWith('Not enough non-option') && entry !== undefined) {
    return `\`roofline ${entry.name}\` wants ${entry.positionals}.`;
  }
  return found;
}

/** A flag or a word that the command does not have. */
function unknownWord(name: string, { words, commandNames, entry, flagNames }: UsageContext): string {
  const isFlag = words.some((word) => word.startsWith('-') && word.replace(/^-+/, '').startsWith(name));
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
