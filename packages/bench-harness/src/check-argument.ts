import { z } from 'zod';
import { ArgumentError } from './errors.ts';

// What JavaScript callers may pass to this package's exports. Schemas separate what was given from what is
// accepted; the error names the function, and the part that is wrong.

/** Throws an ArgumentError unless `value` is what `schema` describes. */
export function checkArgument(owner: string, what: string, value: unknown, schema: z.ZodType): void {
  const { error } = schema.safeParse(value);
  if (!error) return;
  throw new ArgumentError(`${owner}: ${firstIssue(what, error)}.`);
}

/** The first thing that is wrong with `what`: `phases[0].flops: expected number`. */
export function firstIssue(what: string, { issues: [issue] }: z.ZodError): string {
  const path = (issue?.path ?? []).map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`));
  return `${what}${path.join('')}: ${issue?.message.replace(/^Invalid input: /, '')}`;
}

/** Any number; those of zod leave out NaN and the infinities. */
export const anyNumber = z.custom<number>((value) => typeof value === 'number', 'expected number');

export const anyFunction = z.custom((value) => typeof value === 'function', 'expected function');

/** An object, of a class perhaps, and no list. */
export const anyObject = z.custom<object>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  'expected object',
);

/** A schema of zod, of any copy or version of it. */
export function isSchema(value: unknown): value is z.ZodType {
  return typeof (value as z.ZodType | null | undefined)?.parse === 'function';
}
export const anySchema = z.custom<z.ZodType>(isSchema, 'expected a schema of zod');

/** Samples, of which there must be some. */
export const samples = z.array(anyNumber).min(1, 'there are none; measure at least one step');
