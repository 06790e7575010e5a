import type { JsonObject } from '../records/json.ts';
import type { CellRecord } from '../records/record.ts';
import { withBusyMachine } from '../report/busy-machine.ts';
import { withMixedCode } from '../report/mixed-code.ts';
import { withThrottledClocks } from '../report/throttled-clocks.ts';
import { withUnmeasured } from '../report/not-measured.ts';
import { checkDefinition } from './check-benchmark.ts';
import { defaultReport } from './default-report.ts';
import { defaultTable } from './default-table.ts';
import type { Benchmark, BenchmarkDefinition } from './definition.ts';
import { readable } from './readable.ts';

/** Checks a benchmark, and fills in what its definition leaves to the defaults. Throws an ArgumentError. */
export function defineBenchmark<
  Parameters,
  Cell extends JsonObject,
  Settings extends JsonObject,
  Result extends JsonObject,
>(
  definition: BenchmarkDefinition<Parameters, Cell, Settings, Result>,
): Benchmark<Parameters, Cell, Settings, Result> {
  checkDefinition('defineBenchmark', definition);
  const read = ({ result, parameters }: CellRecord) =>
    [definition.result.parse(result), definition.cell.parse(parameters)] as const;
  const describe = ({ parameters }: CellRecord) => definition.describe(definition.cell.parse(parameters));
  const toTable = definition.toTable ?? ((records) => defaultTable(definition, records));
  const toReport = definition.toReport ?? ((records) => defaultReport(definition, records, toTable(records)));
  return {
    ...definition,
    cellOf: (record) => readable(definition, [record], () => definition.cell.parse(record.parameters)),
    samplesMs: (record) => readable(definition, [record], () => definition.samplesMs(...read(record))),
    peakBytes: (record) =>
      readable(definition, [record], () => definition.peakBytes?.(...read(record)) ?? null),
    toTable: (records) => readable(definition, records, () => toTable(records)),
    toReport: (records) =>
      readable(definition, records, () =>
        withUnmeasured(
          withThrottledClocks(
            withBusyMachine(withMixedCode(toReport(records), records), records, describe),
            records,
            describe,
          ),
          records,
          describe,
        ),
      ),
  };
}
