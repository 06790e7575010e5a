import { z } from 'zod';
import { ReportError } from '../model.ts';

// What JavaScript callers may pass instead of what TypeScript asks for. A schema's message says what it wants.

/** @throws ReportError, which names `owner` and the part, unless `value` is what `schema` describes. */
export function requireThat(owner: string, what: string, value: unknown, schema: z.ZodType): void {
  const issue = schema.safeParse(value).error?.issues[0];
  if (!issue) return;
  const path = issue.path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('');
  const part = issue.path.reduce<unknown>(
    (whole, key) => (whole as Record<PropertyKey, unknown>)[key],
    value,
  );
  // Of an option that there is none of, zod names the object that has it.
  const found = issue.code === 'unrecognized_keys' ? issue.keys[0] : part;
  throw new ReportError(`${owner}: ${what}${path} must be ${issue.message}, not ${describe(found)}`);
}

export const text = z.string('text');
/** Any: zod's own leave out NaN and the infinities. */
export const number = z.custom<number>((value) => typeof value === 'number', 'a number');
export const flag = z.boolean('true or false');
export const callable = z.custom((value) => typeof value === 'function', 'a function');
export const length = z.custom<number>(
  (value) => typeof value === 'number' && value > 0 && Number.isFinite(value),
  'a finite number above 0',
);

export function oneOf<Name extends string>(names: readonly Name[]) {
  return z.enum(names, names.map((name) => `'${name}'`).join(' or '));
}

export function listOf<Schema extends z.ZodType>(schema: Schema) {
  return z.array(schema, 'a list');
}

/** An object with these parts, and perhaps more. */
export function partsOf<Parts extends z.ZodRawShape>(parts: Parts) {
  return z.looseObject(parts, 'an object');
}

/** An object with some of these parts and no others: a name that is not an option was meant to do something. */
export function optionsOf(parts: z.ZodRawShape) {
  return z
    .strictObject(parts, {
      error: ({ code }) =>
        code === 'unrecognized_keys' ? `options among ${Object.keys(parts).join(', ')}` : 'an object',
    })
    .partial();
}

function describe(value: unknown): string {
  if (typeof value === 'string') return `'${value}'`;
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'bigint') return `${value}n`;
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}
