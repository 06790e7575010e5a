import { z } from 'zod';
import type { Parameters } from './parameter.ts';

type CellSchema<P extends Parameters> = z.ZodObject<{ -readonly [K in keyof P]: P[K]['schema'] }>;

/** The schema of cells that have these parameters. */
export function cellSchema<const P extends Parameters>(parameters: P): CellSchema<P> {
  return z.object(settingSchemas(parameters)) as unknown as CellSchema<P>;
}

type SweepSchemas<P extends Parameters> = {
  -readonly [K in keyof P]: P[K]['schema'] extends z.ZodDefault<infer Inner>
    ? z.ZodDefault<z.ZodArray<Inner>>
    : z.ZodArray<P[K]['schema']>;
};

/** The schemas of a sweep: of each parameter the values to combine; of one with a default that alone, if not given. */
export function sweepSchemas<const P extends Parameters>(parameters: P): SweepSchemas<P> {
  const lists = Object.entries(parameters).map(([key, { schema }]) => {
    const list = z.array(schema).min(1);
    return [key, schema instanceof z.ZodDefault ? list.default([schema.parse(undefined)]) : list] as const;
  });
  return Object.fromEntries(lists) as unknown as SweepSchemas<P>;
}

/** The schemas of settings, each of one value. */
export function settingSchemas<const P extends Parameters>(
  parameters: P,
): { -readonly [K in keyof P]: P[K]['schema'] } {
  const schemas = Object.entries(parameters).map(([key, { schema }]) => [key, schema] as const);
  return Object.fromEntries(schemas) as { -readonly [K in keyof P]: P[K]['schema'] };
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
