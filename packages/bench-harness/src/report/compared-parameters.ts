import type { Column, Row } from '@roofline/reports';
import { parameterColumn, plainValues } from '../parameters/parameter-columns.ts';
import { isPlain, parametersOf, type Parameters } from '../parameters/parameter.ts';
import type { CellRecord } from '../records/record.ts';

/** A pair of cells, and the parameters that their benchmark declares. */
interface Compared {
  readonly before: CellRecord;
  readonly after: CellRecord;
  readonly parameters?: Parameters;
}

/** The parameters of a pair of cells; what records of an older version lack, those of a newer one have. */
export function comparedValues({ before, after, parameters = {} }: Compared): Row {
  return plainValues(parameters, { ...after.parameters, ...before.parameters });
}

/** Their columns, titled as in the tables of reports; those where all values go without saying are left out. */
export function comparedColumns(comparisons: readonly Compared[]): Column[] {
  const cells = comparisons.map(({ before, after }) => ({ ...after.parameters, ...before.parameters }));
  const declared: Parameters = Object.assign({}, ...comparisons.map(({ parameters }) => parameters ?? {}));
  return Object.entries(parametersOf(declared, cells))
    .filter(([key, { usual }]) => cells.some((cell) => isPlain(cell[key]) && cell[key] !== usual))
    .map(([key, each]) => parameterColumn(key, each, cells));
}
