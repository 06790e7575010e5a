import { UsageError } from '../errors.ts';
import type { CellRecord } from '../records/record.ts';
import type { AnyBenchmark } from './definition.ts';
import type { BenchmarkEntry } from './entry.ts';
import * as listed from './list.ts';

/** The benchmarks of this version, by name. */
export const benchmarkEntries: readonly BenchmarkEntry[] = Object.values(listed);

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
  const known = entries.map((each) => each.name).join(', ');
  throw new UsageError(`There is no benchmark ${name} in this version; there are: ${known}.`);
}

/** The benchmarks that wrote `records`, to be found by their names. */
export async function benchmarksOf(
  records: readonly CellRecord[],
  entries: readonly BenchmarkEntry[] = benchmarkEntries,
): Promise<ReadonlyMap<string, AnyBenchmark>> {
  const names = [...new Set(records.map(({ benchmark }) => benchmark))];
  return new Map(
    await Promise.all(names.map(async (name) => [name, await loadBenchmark(name, entries)] as const)),
  );
}
