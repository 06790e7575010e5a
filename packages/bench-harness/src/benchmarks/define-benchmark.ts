import type { z } from 'zod';
import { isSchema } from '../check-argument.ts';
import { cellWords } from '../parameters/cell-names.ts';
import { cellSchema } from '../parameters/cell-schema.ts';
import type { Parameters as CellParameters } from '../parameters/parameter.ts';
import type { JsonObject } from '../records/json.ts';
import type { CellRecord } from '../records/record.ts';
import { withCircumstances } from '../report/circumstances.ts';
import { interpret } from '../report/measurement.ts';
import { withUnmeasured } from '../report/not-measured.ts';
import { checkDefinition } from './check-benchmark.ts';
import type { Benchmark, BenchmarkDefinition, CellDeclaration } from './definition.ts';
import { presentFindings, presentReport, presentTable } from './present.ts';
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
  const { cell, cellParameters } = declarationOf(definition);
  const describe = definition.describe ?? ((each: Cell) => cellWords(cellParameters, each).join(' · '));
  const schemas = { ...definition, cell, describe };
  const shown = { ...definition, describe, cellParameters };
  const read = <T>(records: readonly CellRecord[], of: (cells: ReturnType<typeof interpretAll>) => T): T =>
    readable(schemas, records, () => of(interpretAll(records)));
  const interpretAll = (records: readonly CellRecord[]) =>
    records.map((record) => interpret(schemas, record));
  const nameOf = ({ parameters }: CellRecord) => describe(cell.parse(parameters));
  return {
    ...definition,
    describe,
    cellParameters,
    cellOf: (record) => readable(schemas, [record], () => cell.parse(record.parameters)),
    samplesMs: (record) => read([record], ([each]) => each!.samplesMs),
    peakBytes: (record) => read([record], ([each]) => each!.peakBytes),
    question: (records) => read(records, (cells) => definition.question?.(cells) ?? definition.title),
    toTable: (records) => read(records, (cells) => presentTable(shown, cells)),
    toOverview: (records) =>
      read(records, (cells) => {
        const blocks = definition.overview?.flatMap((each) => each(cells)) ?? [];
        return {
          tables: blocks.filter((block) => block.kind === 'table'),
          notes: blocks.flatMap((block) => (block.kind === 'note' ? [block.text] : [])),
          findings: presentFindings(shown, cells),
        };
      }),
    toPictures: (records) => read(records, (cells) => definition.pictures?.(cells) ?? []),
    toReport: (records) =>
      read(records, (cells) => {
        const report = withCircumstances(presentReport(shown, cells), records, nameOf);
        return withUnmeasured(report, records, nameOf);
      }),
  };
}

/** The schema of cells, and their parameters where they are declared. */
function declarationOf<Cell extends JsonObject>({
  cell,
  cellParameters: said = {},
}: {
  readonly cell: CellDeclaration<Cell>;
  readonly cellParameters?: CellParameters;
}): { cell: z.ZodType<Cell>; cellParameters: CellParameters } {
  if (isSchema(cell)) return { cell: cell as z.ZodType<Cell>, cellParameters: said };
  const cellParameters = cell as unknown as CellParameters;
  return { cell: cellSchema(cellParameters) as unknown as z.ZodType<Cell>, cellParameters };
}
