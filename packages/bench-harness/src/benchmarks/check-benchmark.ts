import type { ColumnKind } from '@roofline/reports';
import { z } from 'zod';
import { anyFunction, anySchema, checkArgument } from '../check-argument.ts';
import { declaredParameters } from '../parameters/parameter.ts';
import type { BenchmarkEntry } from './entry.ts';

const sweep = {
  // A report has it in its anchors, and in the names of its files.
  name: z.string().regex(/^[\w.-]+$/, "takes letters, digits, '_', '-' and '.'"),
  title: z.string(),
  parameters: anySchema,
  result: anySchema,
  settings: anyFunction,
  expand: anyFunction,
  flashAttention: anyFunction.optional(),
  sharesProcess: anyFunction.optional(),
  measure: anyFunction.optional(),
};
const kinds = [
  'text',
  'number',
  'ratio',
  'percent',
  'bytes',
  'duration',
  'status',
] as const satisfies ColumnKind[];
const column = z.object({
  key: z.string(),
  label: z.string(),
  kind: z.enum(kinds),
  value: anyFunction,
  deviation: anyFunction.optional(),
});
const functions = z.array(anyFunction).optional();
const section = z.object({ id: z.string(), title: z.string(), blocks: z.array(anyFunction) });
const definitionSchema = z.object({
  ...sweep,
  cell: z.union([anySchema, declaredParameters], 'expected parameters or a schema of zod'),
  cellParameters: declaredParameters.optional(),
  settingParameters: declaredParameters.optional(),
  describe: anyFunction.optional(),
  question: anyFunction.optional(),
  samplesMs: anyFunction,
  peakBytes: anyFunction.optional(),
  cost: anyFunction.optional(),
  columns: z.array(column).optional(),
  table: anyFunction.optional(),
  overview: functions,
  findings: functions,
  lead: anyFunction.optional(),
  pictures: anyFunction.optional(),
  sections: z.array(z.union([anyFunction, section])).optional(),
});
const benchmarkSchema = z.object({
  ...sweep,
  describe: anyFunction,
  cellParameters: declaredParameters,
  cellOf: anyFunction,
  samplesMs: anyFunction,
  peakBytes: anyFunction,
  question: anyFunction,
  toTable: anyFunction,
  toOverview: anyFunction,
  toReport: anyFunction,
  toPictures: anyFunction,
});

const entryList = z.array(z.object({ name: z.string(), definition: anyFunction }));

// Each throws an ArgumentError, which names `owner`.

/** What `defineBenchmark` takes. */
export function checkDefinition(owner: string, definition: object): void {
  checkArgument(owner, 'definition', definition, definitionSchema);
}

/** What `defineBenchmark` makes. */
export function checkBenchmark(owner: string, benchmark: object): void {
  checkArgument(owner, 'benchmark', benchmark, benchmarkSchema);
}

/** A name, and the entries to look for it in. */
export function checkEntries(owner: string, name: string, entries: readonly BenchmarkEntry[]): void {
  checkArgument(owner, 'name', name, z.string());
  checkArgument(owner, 'entries', entries, entryList);
}
