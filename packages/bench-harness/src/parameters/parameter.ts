import { z } from 'zod';
import { anyFunction, anySchema, checkArgument } from '../check-argument.ts';
import type { Json } from '../records/json.ts';
import { capitalize, inWords } from './words.ts';

/** How the command line asks for a parameter. */
export interface ParameterFlag {
  /** Without it the key of the parameter, in the form of flags: `peer-attention`. */
  readonly name?: string;
  readonly describe: string;
  /** As it would be typed. */
  readonly default?: string;
  /** Other names of its values. */
  readonly synonyms?: Readonly<Record<string, string>>;
  /** Some of many values, for completion. */
  readonly completions?: readonly string[];
}

/** One parameter of a benchmark's cells: its values, and how tables, captions and names say them. */
export interface Parameter<Schema extends z.ZodType = z.ZodType> {
  /** Of one value, as records hold it; its default is that of records from before there was a choice. */
  readonly schema: Schema;
  /** Of its columns; without it the parameter's own name. */
  readonly title?: string;
  /** The tooltip of its columns. */
  readonly description?: string;
  /** Whether it takes a column always, the default, or only where it differs; captions then say what all rows share. */
  readonly column?: 'always' | 'swept';
  /** Where it names what is compared. */
  readonly emphasis?: 'strong';
  /** The value that names and captions leave out. */
  readonly usual?: Json;
  /** Of a peer's parameter the one of ours that it is compared with: names do not repeat what follows from that. */
  readonly beside?: string;
  /** What rows hold besides for its column to show: under another key, the value in words. */
  readonly shown?: { readonly key: string; text(value: never): string };
  /** The command-line flag that gives its values, or the one value of a setting; none where commands have their own way. */
  readonly flag?: ParameterFlag;
  /** A value in a name: `context 256`. Without it a text is said as it is, and a number after the parameter's name. */
  words?(value: never): string;
}

/** The parameters of a cell by their keys in records, in the order of columns and names. */
export type Parameters = Readonly<Record<string, Parameter>>;

const declaredFlag = z.strictObject({
  name: z.string().optional(),
  describe: z.string(),
  default: z.string().optional(),
  synonyms: z.record(z.string(), z.string()).optional(),
  completions: z.array(z.string()).readonly().optional(),
});
const saidOfIt = z.strictObject({
  title: z.string().optional(),
  description: z.string().optional(),
  column: z.enum(['always', 'swept']).optional(),
  emphasis: z.literal('strong').optional(),
  usual: z.json().optional(),
  beside: z.string().optional(),
  shown: z.strictObject({ key: z.string(), text: anyFunction }).optional(),
  flag: declaredFlag.optional(),
  words: anyFunction.optional(),
});

/** What is taken for parameters: schemas by keys; the rest was checked where each was declared. */
export const declaredParameters = z.record(z.string(), z.object({ schema: anySchema }));

/** Declares a parameter by the schema of its values. Throws an ArgumentError. */
export function parameter<Schema extends z.ZodType>(
  schema: Schema,
  more: Omit<Parameter<Schema>, 'schema' | 'words'> & { words?(value: z.infer<Schema>): string } = {},
): Parameter<Schema> {
  checkArgument('parameter', 'schema', schema, anySchema);
  checkArgument('parameter', 'more', more, saidOfIt);
  return { schema, ...more };
}

/** The parameter with another form of its flag. */
export function withFlag<P extends Parameter>(declared: P, changes: Partial<ParameterFlag>): P {
  return { ...declared, flag: { ...declared.flag!, ...changes } };
}

/** The title of a parameter's column: `Context`, `PyTorch's attention`. */
export function titleOf(key: string, { title }: Pick<Parameter, 'title'> = {}): string {
  return title ?? capitalize(inWords(key));
}

/** A value of a parameter as a name says it. */
export function valueInWords(key: string, { words }: Parameter, value: Json): string {
  if (words) return words(value as never);
  return typeof value === 'string' ? value : `${inWords(key)} ${String(value)}`;
}

/** The parameters of cells: those that are declared, and whatever else they hold. */
export function parametersOf(declared: Parameters, cells: readonly object[]): Parameters {
  const found = new Set(cells.flatMap((cell) => Object.keys(cell)));
  const undeclared = [...found].filter((key) => !Object.hasOwn(declared, key));
  return { ...declared, ...Object.fromEntries(undeclared.map((key) => [key, parameter(z.json())])) };
}

/** Nested values repeat what another parameter says. */
export function isPlain(value: unknown): value is string | number | boolean {
  return value !== undefined && value !== null && typeof value !== 'object';
}
