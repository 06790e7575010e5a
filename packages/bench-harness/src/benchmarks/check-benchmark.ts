import type { ColumnKind } from '@roofline/reports';
import { z } from 'zod';
import { anyFunction, checkArgument } from '../check-argument.ts';
import type { BenchmarkEntry } from './entry.ts';

/** A schema of zod, of any copy or version of it. */
const schema = z.custom(
  (value) => typeof (value as z.ZodType | null | undefined)?.parse === 'function',
  'expected a schema of zod',
);
const sweep = {
  // A report has it in its anchors, and in the names of its files.
  name: z.string().regex(/^[\w.-]+$/, "takes letters, digits, '_', '-' and '.'"),
  title: z.string(),
  parameters: schema,
  result: schema,
  settings: anyFunction,
  expand: anyFunction,
  describe: anyFunction,
  flashAttention: anyFunction.optional(),
  measure: anyFunction,
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
const definitionSchema = z.object({
  ...sweep,
  cell: schema,
  samplesMs: anyFunction,
  peakBytes: anyFunction.optional(),
  cost: anyFunction.optional(),
  columns: z.array(column).optional(),
  toTable: anyFunction.optional(),
  toReport: anyFunction.optional(),
});
const benchmarkSchema = z.object({
  ...sweep,
  cellOf: anyFunction,
  samplesMs: anyFunction,
  peakBytes: anyFunction,
  toTable: anyFunction,
  toReport: anyFunction,
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
