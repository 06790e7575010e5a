import { z } from 'zod';
import { firstIssue } from '../check-argument.ts';
import { UsageError } from '../errors.ts';
import { placeOf } from '../records/record-places.ts';
import type { CellRecord } from '../records/record.ts';

/** What decides whether a benchmark reads a record. */
interface Schemas {
  readonly name: string;
  readonly cell: z.ZodType;
  readonly result: z.ZodType;
}

/**
 * What `read` makes of records. Throws a UsageError, which names the line, for those that the benchmark's schemas refuse:
 * another version wrote them, or they were changed by hand.
 */
export function readable<T>(benchmark: Schemas, records: readonly CellRecord[], read: () => T): T {
  try {
    return read();
  } catch (cause) {
    if (!(cause instanceof z.ZodError)) throw cause;
    const record = records.find((each) => isRefused(benchmark, each));
    const place = (record && placeOf(record)) ?? 'A record';
    const version = record?.environment.packages['@roofline/bench-harness'];
    const writer = version === undefined ? '' : `; ${version} wrote it`;
    throw new UsageError(
      `${place} is no record of ${benchmark.name} that this version reads (${firstIssue('it', cause)})${writer}. Read it with ` +
        'the version that wrote it, or move the line to a file of its own, which has its cell measured again.',
      { cause },
    );
  }
}

function isRefused({ cell, result }: Schemas, record: CellRecord): boolean {
  const isCell = cell.safeParse(record.parameters).success;
  return !isCell || (record.status === 'ok' && !result.safeParse(record.result).success);
}
