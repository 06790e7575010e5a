import { parseChoice, parseChoices, single } from '../option-values.ts';

/** Other names of values, as people know them from elsewhere. */
type Synonyms<T extends string> = Readonly<Record<string, T>>;

/** One of some values, which help shows and completion offers. */
export function choiceOf<const T extends string>(
  flag: string,
  values: readonly T[],
  synonyms: Synonyms<T> = {},
) {
  return {
    type: 'string',
    values,
    coerce: (given: string | readonly string[]): T => {
      const name = single(flag, given);
      return parseChoice(flag, Object.hasOwn(synonyms, name) ? synonyms[name]! : name, values);
    },
  } as const;
}

/** One or several of them, between commas. */
export function choicesOf<const T extends string>(
  flag: string,
  values: readonly T[],
  synonyms?: Synonyms<T>,
) {
  return { type: 'string', values, coerce: parseChoices(flag, values, synonyms) } as const;
}
