import { normalize } from 'node:path';
import type { z } from 'zod';
import { nearestOf } from '@roofline/cuda/host';
import { UsageError } from '../errors.ts';

/** What yargs hands to `coerce`: a flag given twice is an array. */
type Given = string | readonly string[];

function splitList(given: Given): string[] {
  return [given].flat().flatMap((part) => part.split(',').map((item) => item.trim()));
}

/** `a,b` or the flag given twice; empty items are refused. */
export function parseList(flag: string): (given: Given) => string[] {
  return (given) => {
    const items = splitList(given);
    if (items.includes('')) throw new UsageError(`--${flag} wants one value or several between commas.`);
    return [...new Set(items)];
  };
}

/** `synonyms` are other names of choices. */
export function parseChoices<T extends string>(
  flag: string,
  choices: readonly T[],
  synonyms: Readonly<Record<string, T>> = {},
): (given: Given) => T[] {
  const parse = parseList(flag);
  const known = new Map(Object.entries(synonyms));
  return (given) => [
    ...new Set(parse(given).map((item) => parseChoice(flag, known.get(item) ?? item, choices))),
  ];
}

/** Texts that a schema takes, whose message says what it does. */
export function parseTexts(flag: string, schema: z.ZodString): (given: Given) => string[] {
  const parse = parseList(flag);
  return (given) =>
    parse(given).map((item) => {
      const { error } = schema.safeParse(item);
      if (!error) return item;
      throw new UsageError(`--${flag} wants ${error.issues[0]!.message}, not '${item}'.`);
    });
}

export function parseChoice<T extends string>(flag: string, given: string, choices: readonly T[]): T {
  const found = choices.find((choice) => choice === given);
  if (found === undefined) throw unknownChoice(flag, given, choices);
  return found;
}

export function parseWholeNumbers(flag: string, least: number): (given: Given) => number[] {
  const parse = parseList(flag);
  return (given) => parse(given).map((item) => wholeNumber(flag, item, least));
}

export function parseWholeNumber(flag: string, least: number): (given: Given) => number {
  return (given) => wholeNumber(flag, single(flag, given), least);
}

export function parsePositiveNumber(flag: string): (given: Given) => number {
  return parseNumber(flag, 'a number above 0', (value) => value > 0 && Number.isFinite(value));
}

/** A number that `isAllowed`; `wanted` says which are. */
export function parseNumber(
  flag: string,
  wanted: string,
  isAllowed: (value: number) => boolean,
): (given: Given) => number {
  return (given) => {
    const text = single(flag, given);
    const value = Number(text);
    // JavaScript takes blanks for 0.
    if (text.trim() === '' || !isAllowed(value)) {
      throw new UsageError(`--${flag} wants ${wanted}, not '${text}'.`);
    }
    return value;
  };
}

const PREFIXES: Readonly<Record<string, number>> = { '': 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12, p: 1e15 };

/** How much of `unit`, as `B/s`, a `50GB/s` is; prefixes are powers of a thousand. */
export function parseRate(flag: string, unit: string): (given: Given) => number {
  const pattern = new RegExp(`^(\\d+(?:\\.\\d+)?)\\s*([kmgtp]?)${unit}$`, 'i');
  return (given) => {
    const text = single(flag, given).trim();
    const [, number = '', prefix = ''] = pattern.exec(text) ?? [];
    const value = Number(number) * PREFIXES[prefix.toLowerCase()]!;
    if (number === '' || !(value > 0 && Number.isFinite(value)))
      throw new UsageError(`--${flag} wants a number of ${unit}, such as 50G${unit}, not '${text}'.`);
    return value;
  };
}

const MILLISECONDS = { s: 1000, m: 60_000, h: 3_600_000 } as const;

/** A duration in milliseconds: `90s`, `10m`, `1.5h`. */
export function parseDuration(flag: string): (given: Given) => number {
  return (given) => {
    const text = single(flag, given);
    const [, number, unit] = /^(\d+(?:\.\d+)?)([smh])$/.exec(text) ?? [];
    if (number === undefined) {
      throw new UsageError(`--${flag} wants a time, as 90s, 10m or 1h, not '${text}'.`);
    }
    return Number(number) * MILLISECONDS[unit as keyof typeof MILLISECONDS];
  };
}

/** A limit of a ratio: `1.05`, or `5%` above 1. */
export function parseLimit(flag: string): (given: Given) => number {
  return (given) => {
    const text = single(flag, given);
    const [, percent] = /^(\d+(?:\.\d+)?) ?%$/.exec(text) ?? [];
    if (percent !== undefined) return 1 + Number(percent) / 100;
    const value = Number(text);
    if (text === '' || !(value > 0 && Number.isFinite(value))) {
      throw new UsageError(`--${flag} wants a ratio above 0, as 1.05, or a share, as 5%, not '${text}'.`);
    }
    return value;
  };
}

/** A file or folder; an empty one, as of a shell variable that is not set, would be the current folder. */
export function parsePath(flag: string): (given: Given) => string {
  return (given) => {
    const path = single(flag, given);
    if (path === '') throw new UsageError(`--${flag} wants a path, not ''; . is the current folder.`);
    return normalize(path);
  };
}

/** The value of a flag that is given once. */
export function single<T>(flag: string, given: T | readonly T[]): T {
  if (!Array.isArray(given)) return given as T;
  throw new UsageError(`--${flag} was given ${given.length} times; it takes one value.`);
}

function wholeNumber(flag: string, text: string, least: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < least) {
    throw new UsageError(`--${flag} wants a whole number of at least ${least}, not '${text}'.`);
  }
  return value;
}

/** A UsageError that names what was given, the nearest choice, and all of them. */
export function unknownChoice(kind: string, given: string, choices: readonly string[]): UsageError {
  const suggestion = nearestOf(given, choices);
  const question = suggestion === null ? '' : ` Did you mean ${suggestion}?`;
  return new UsageError(`Unknown ${kind} '${given}'.${question} Choices: ${choices.join(', ')}.`);
}
