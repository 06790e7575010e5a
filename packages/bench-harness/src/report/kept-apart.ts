import type { CellRecord } from '../records/record.ts';
import { plainValues } from '../parameters/parameter-columns.ts';
import { inWords } from '../parameters/words.ts';

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
