import { z } from 'zod';
import type { Parameter, Parameters } from '../../parameters/parameter.ts';
import type { Flag } from '../command.ts';
import { parseChoices, parseWholeNumber, parseWholeNumbers } from '../option-values.ts';

/** What the command line gave, by the names of flags. */
export type GivenArguments = Readonly<Record<string, unknown>>;

/** The flags of swept parameters, each of one value or several between commas. */
export function sweptFlagsOf(parameters: Parameters): Record<string, Flag> {
  return flagsOf(parameters, (name, schema, synonyms) =>
    schema instanceof z.ZodEnum
      ? { values: choicesOf(schema), coerce: parseChoices(name, choicesOf(schema), synonyms) }
      : { coerce: parseWholeNumbers(name, leastOf(schema)) },
  );
}

/** The flags of settings, each of one whole number. */
export function settingFlagsOf(parameters: Parameters): Record<string, Flag> {
  return flagsOf(parameters, (name, schema) => ({ coerce: parseWholeNumber(name, leastOf(schema)) }));
}

type Values<P extends Parameters, Form extends 'list' | 'one'> = {
  -readonly [K in keyof P]: Form extends 'list' ? z.output<P[K]['schema']>[] : z.output<P[K]['schema']>;
};

/** The values that flags gave to swept parameters, by their keys; those of flags that were not given are left out. */
export function sweptBy<P extends Parameters>(parameters: P, args: GivenArguments): Values<P, 'list'> {
  return valuesBy(parameters, args) as Values<P, 'list'>;
}

/** The same of settings. */
export function settingsBy<P extends Parameters>(parameters: P, args: GivenArguments): Values<P, 'one'> {
  return valuesBy(parameters, args) as Values<P, 'one'>;
}

function valuesBy(parameters: Parameters, args: GivenArguments): Record<string, unknown> {
  const given = Object.entries(parameters).map(([key, each]) => [key, args[nameOf(key, each)]] as const);
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}

function flagsOf(
  parameters: Parameters,
  read: (
    name: string,
    schema: z.ZodType,
    synonyms: Readonly<Record<string, string>> | undefined,
  ) => Pick<Flag, 'values' | 'coerce'>,
): Record<string, Flag> {
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
