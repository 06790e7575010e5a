import { UsageError } from '../errors.ts';
import { placeOf } from '../records/record-places.ts';
import type { CellRecord } from '../records/record.ts';
import type { AnyBenchmark } from './definition.ts';
import type { BenchmarkEntry } from './entry.ts';
import { benchmarkEntries } from './list.ts';

/** Loads the benchmark `name`. Throws UsageError for one that is not among `entries`. */
export async function loadBenchmark(
  name: string,
  entries: readonly BenchmarkEntry[] = benchmarkEntries,
): Promise<AnyBenchmark> {
  // Not before it is called: the command line starts without schemas.
  const { checkBenchmark, checkEntries } = await import('./check-benchmark.ts');
  checkEntries('loadBenchmark', name, entries);
  const entry = entries.find((each) => each.name === name);
  if (entry) {
    const benchmark = await entry.definition();
    checkBenchmark(`loadBenchmark: the entry ${name}`, benchmark);
    return benchmark;
  }
  throw new UsageError(`There is no benchmark ${name} in this version; there are: ${namesOf(entries)}.`);
}

/** The benchmarks that wrote `records`, to be found by their names. */
export async function benchmarksOf(
  records: readonly CellRecord[],
  entries: readonly BenchmarkEntry[] = benchmarkEntries,
): Promise<ReadonlyMap<string, AnyBenchmark>> {
  const firsts = new Map(records.toReversed().map((record) => [record.benchmark, record]));
  return new Map(
    await Promise.all(
      [...firsts].map(async ([name, first]) => [name, await benchmarkOf(first, entries)] as const),
    ),
  );
}

async function benchmarkOf(record: CellRecord, entries: readonly BenchmarkEntry[]): Promise<AnyBenchmark> {
  const [place, { benchmark }] = [placeOf(record), record];
  if (place === null || entries.some(({ name }) => name === benchmark))
    return loadBenchmark(benchmark, entries);
  throw new UsageError(
    `${place} belongs to a benchmark ${benchmark}, which this version does not have; it has ${namesOf(entries)}. Read it with ` +
      'the version or the program that wrote it, or take another folder.',
  );
}

function namesOf(entries: readonly BenchmarkEntry[]): string {
  return entries.map(({ name }) => name).join(', ');
}
