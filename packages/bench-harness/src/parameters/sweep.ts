import { z } from 'zod';
import { checkArgument } from '../check-argument.ts';
import { ArgumentError } from '../errors.ts';
import type { JsonObject } from '../records/json.ts';
import { combinations, settingSchemas, sweepSchemas } from './cell-schema.ts';
import { declaredParameters, type Parameters } from './parameter.ts';

/** One value of each parameter. */
export type ValuesOf<P extends Parameters> = { -readonly [K in keyof P]: z.output<P[K]['schema']> };
/** Those values of each that are swept. */
export type ListsOf<P extends Parameters> = { -readonly [K in keyof P]: z.output<P[K]['schema']>[] };

/** What a benchmark sweeps, as its definition has it. */
export interface DeclaredSweep<Cell extends Parameters, Settings extends Parameters> {
  readonly cell: Cell;
  readonly settingParameters: Settings;
  readonly parameters: z.ZodType<ListsOf<Cell> & ValuesOf<Settings>>;
  settings(parameters: ListsOf<Cell> & ValuesOf<Settings>): ValuesOf<Settings> & JsonObject;
  expand(parameters: ListsOf<Cell> & ValuesOf<Settings>): (ValuesOf<Cell> & JsonObject)[];
}

const sweepSchema = z.strictObject({
  cell: declaredParameters,
  settings: declaredParameters,
  nested: z.array(z.string()).readonly().optional(),
});

/**
 * The sweep that follows from the parameters of a cell and from the settings that all cells share: it takes a list of values for
 * each of those, of which every combination is a cell, and one value for each of these. `nested` names the parameters from
 * the one that changes most slowly to the innermost; without it they are in their order. Throws an ArgumentError.
 */
export function sweepOf<const Cell extends Parameters, const Settings extends Parameters>(declared: {
  readonly cell: Cell;
  readonly settings: Settings;
  readonly nested?: readonly (keyof Cell & string)[];
}): DeclaredSweep<Cell, Settings> {
  checkArgument('sweepOf', 'declared', declared, sweepSchema);
  const { cell, settings, nested = Object.keys(cell) } = declared;
  checkNested(nested, Object.keys(cell));
  const valuesAt = (keys: readonly string[], parameters: Readonly<Record<string, unknown>>) =>
    Object.fromEntries(keys.map((key) => [key, parameters[key]]));
  return {
    cell,
    settingParameters: settings,
    parameters: z.object({ ...sweepSchemas(cell), ...settingSchemas(settings) }) as never,
    settings: (parameters) => valuesAt(Object.keys(settings), parameters) as never,
    expand: (parameters) => combinations(valuesAt(nested, parameters) as never) as never,
  };
}

/** A parameter that is left out would be in no cell. */
function checkNested(nested: readonly string[], keys: readonly string[]): void {
  if (nested.length === keys.length && keys.every((key) => nested.includes(key))) return;
  throw new ArgumentError(
    `sweepOf: declared.nested has ${nested.join(', ') || 'nothing'}, but a cell ${keys.join(', ') || 'nothing'}; name each once.`,
  );
}
