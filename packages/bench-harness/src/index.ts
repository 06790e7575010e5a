export type {
  AnyBenchmark,
  Benchmark,
  BenchmarkDefinition,
  CellContext,
  CellTask,
  ResultColumn,
  StepCost,
} from './benchmarks/definition.ts';
export { defineBenchmark } from './benchmarks/define-benchmark.ts';
export { type BenchmarkEntry } from './benchmarks/entry.ts';
export { benchmarkEntries, loadBenchmark } from './benchmarks/registry.ts';
export { floorMs, type Ceilings, type PhaseWork } from './measuring/ceilings.ts';
export { prepareDevice, type PreparedDevice } from './device/prepare-device.ts';
export { ArgumentError, EXIT, ResultsFileError, UsageError } from './errors.ts';
export { type Json, type JsonObject } from './records/json.ts';
export { describeEnvironment, type DeviceDescription, type Environment } from './records/environment.ts';
export { type CellRecord, type CellStatus } from './records/record.ts';
export { readResults } from './records/results-folder.ts';
export { reportOfRecords } from './report/report-of-records.ts';
export { compareRecords, comparisonTable, type Comparison } from './report/compare.ts';
export { writeReport, type WrittenReport } from './report/write-report.ts';
export { runSweep, type SweepObserver, type SweepOptions, type SweepOutcome } from './runner/sweep.ts';
export { ratioOfMedians, summarize, type RatioEstimate, type Summary } from './measuring/statistics.ts';
export { collectSteps, timeStep, type Phase, type StepTime, type StepTimes } from './measuring/timing.ts';
