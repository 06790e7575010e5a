import { z } from 'zod';
import type { Parameter, Parameters } from '../../parameters/parameter.ts';
import type { ListsOf, ValuesOf } from '../../parameters/sweep.ts';
import type { Flag } from '../command.ts';
import {
  parseChoices,
  parsePositiveNumber,
  parseTexts,
  parseWholeNumber,
  parseWholeNumbers,
} from '../option-values.ts';
import { choiceOf } from './choices.ts';

/** What the command line gave, by the names of flags. */
export type GivenArguments = Readonly<Record<string, unknown>>;

type Reading = (
  name: string,
  schema: z.ZodType,
  synonyms: Readonly<Record<string, string>> | undefined,
) => Pick<Flag, 'values' | 'coerce'>;

/** The flags of swept parameters, each of one value or several between commas. */
export function sweptFlagsOf(parameters: Parameters): Record<string, Flag> {
  return flagsOf(parameters, severalOf);
}

/** The flags of settings, each of one value, or of several where that is a list. */
export function settingFlagsOf(parameters: Parameters): Record<string, Flag> {
  return flagsOf(parameters, (name, schema, synonyms) =>
    schema instanceof z.ZodArray
      ? severalOf(name, schema.element as z.ZodType, synonyms)
      : oneOf(name, schema, synonyms),
  );
}

const severalOf: Reading = (name, schema, synonyms) => {
  if (schema instanceof z.ZodEnum)
    return { values: choicesOf(schema), coerce: parseChoices(name, choicesOf(schema), synonyms) };
  if (schema instanceof z.ZodString) return { coerce: parseTexts(name, schema) };
  return { coerce: parseWholeNumbers(name, leastOf(schema)) };
};

const oneOf: Reading = (name, schema) => {
  if (schema instanceof z.ZodEnum) return choiceOf(name, choicesOf(schema));
  const isWhole = !schema.safeParse(1.5).success;
  return { coerce: isWhole ? parseWholeNumber(name, leastOf(schema)) : parsePositiveNumber(name) };
};

/** The values that flags gave to swept parameters, by their keys; those of flags that were not given are left out. */
export function sweptBy<P extends Parameters>(parameters: P, args: GivenArguments): ListsOf<P> {
  return valuesBy(parameters, args) as ListsOf<P>;
}

/** The same of settings, each of which may not be given. */
export function settingsBy<P extends Parameters>(parameters: P, args: GivenArguments): Partial<ValuesOf<P>> {
  return valuesBy(parameters, args) as Partial<ValuesOf<P>>;
}

function valuesBy(parameters: Parameters, args: GivenArguments): Record<string, unknown> {
  const given = Object.entries(parameters).map(([key, each]) => [key, args[nameOf(key, each)]] as const);
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}

function flagsOf(parameters: Parameters, read: Reading): Record<string, Flag> {
  const flags = Object.entries(parameters).flatMap(([key, each]): [string, Flag][] => {
    const { schema, flag } = each;
    if (!flag) return [];
    const { describe, default: value, completions, synonyms } = flag;
    const name = nameOf(key, each);
    const valueSchema = (schema instanceof z.ZodDefault ? schema.unwrap() : schema) as z.ZodType;
    return [
      [
        name,
        {
          ...{ type: 'string', describe, ...read(name, valueSchema, synonyms) },
          ...(value !== undefined && { default: value }),
          ...(completions && { completions: () => completions }),
        },
      ],
    ];
  });
  return Object.fromEntries(flags);
}

function nameOf(key: string, { flag }: Parameter): string {
  return flag?.name ?? key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function choicesOf(schema: z.ZodEnum): string[] {
  return schema.options.map(String);
}

/** The least whole number that a schema takes, 0 or 1. */
function leastOf(schema: z.ZodType): number {
  return schema.safeParse(0).success ? 0 : 1;
}
