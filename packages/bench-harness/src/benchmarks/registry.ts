import type { Benchmark } from './definition.ts';
import { e2eBenchmark } from './e2e/benchmark.ts';
import { UsageError } from '../errors.ts';
import { overheadBenchmark } from './overhead/benchmark.ts';
import { memoryBenchmark } from './memory/benchmark.ts';
import { precisionBenchmark } from './precision/benchmark.ts';
import { profileBenchmark } from './profile/benchmark.ts';
import type { CellRecord } from '../records/record.ts';
import { warmupBenchmark } from './warmup/benchmark.ts';

/** What reading records needs of a benchmark. */
export type RecordReader = Pick<
  Benchmark<never, never, never, never>,
  'name' | 'title' | 'describe' | 'samplesMs' | 'peakBytes' | 'toTable' | 'toReport'
>;

const benchmarks: readonly RecordReader[] = [
  e2eBenchmark,
  profileBenchmark,
  warmupBenchmark,
  overheadBenchmark,
  memoryBenchmark,
  precisionBenchmark,
];

/** The benchmark that wrote `record`. Throws UsageError for one that this version does not know. */
export function benchmarkOf(record: CellRecord): RecordReader {
  const found = benchmarks.find(({ name }) => name === record.benchmark);
  if (found) return found;
  const known = benchmarks.map(({ name }) => name).join(', ');
  throw new UsageError(`There is no benchmark ${record.benchmark} in this version; there are: ${known}.`);
}

/** One short line for the cell of a record, which holds the parameters of its own benchmark. */
export function describeRecord(record: CellRecord): string {
  return benchmarkOf(record).describe(record.parameters as never);
}
