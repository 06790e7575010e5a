import { z } from 'zod';
import type { Parameters } from './parameter.ts';

type CellSchema<P extends Parameters> = z.ZodObject<{ -readonly [K in keyof P]: P[K]['schema'] }>;

/** The schema of cells that have these parameters. */
export function cellSchema<const P extends Parameters>(parameters: P): CellSchema<P> {
  const schemas = Object.entries(parameters).map(([key, { schema }]) => [key, schema] as const);
  return z.object(Object.fromEntries(schemas)) as unknown as CellSchema<P>;
}

/** Every combination of values of several lists; the first list changes most slowly. */
export function combinations<const Lists extends Readonly<Record<string, readonly unknown[]>>>(
  lists: Lists,
): { -readonly [K in keyof Lists]: Lists[K][number] }[] {
  const combined = Object.entries(lists).reduce<Record<string, unknown>[]>(
    (partial, [key, values]) => partial.flatMap((each) => values.map((value) => ({ ...each, [key]: value }))),
    [{}],
  );
  return combined as { -readonly [K in keyof Lists]: Lists[K][number] }[];
}
