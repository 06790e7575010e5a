import type { Column, Row } from '@roofline/reports';
import { parameterColumn, plainValues } from '../parameters/parameter-columns.ts';
import { isPlain, parametersOf, type Parameters } from '../parameters/parameter.ts';
import type { CellRecord } from '../records/record.ts';
import { inWords } from '../parameters/words.ts';

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

/**
 * Why no cell of `before` is one of `after`, in words: `dtype float32 before, bfloat16 after`. Their benchmarks, or the
 * parameters of which they have no value in common; empty where each is found in both.
 */
export function keptApartBy(before: readonly CellRecord[], after: readonly CellRecord[]): string {
  const benchmark = apart('benchmark', [before, after], (record) => record.benchmark);
  if (benchmark !== null) return benchmark;
  const [first] = before;
  return Object.keys(plainValues({}, first!.parameters))
    .flatMap(
      (name) => apart(name, [before, after], (record) => plainValues({}, record.parameters)[name]) ?? [],
    )
    .join('; ');
}

function apart(
  name: string,
  sides: readonly (readonly CellRecord[])[],
  valueOf: (record: CellRecord) => unknown,
): string | null {
  const [before, after] = sides.map((records) => [...new Set(records.map(valueOf))]);
  // Of a parameter that records of an older version do not have, nothing is known.
  const isUnknown = [...before!, ...after!].includes(undefined);
  if (isUnknown || before!.some((value) => after!.includes(value))) return null;
  return `${inWords(name)} ${before!.join(' or ')} before, ${after!.join(' or ')} after`;
}
