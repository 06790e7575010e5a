import { defineBenchmark } from '../define-benchmark.ts';
import { describeCell } from '../e2e/parameters.ts';
import {
  compileCell,
  compileParameters,
  expandCompileCells,
  type CompileCell,
  type CompileParameters,
  type CompileSettings,
} from './parameters.ts';
import { interpretCompile } from './report/interpret.ts';
import { compileReport } from './report/report.ts';
import { programTable } from './report/tables.ts';
import { compileResult } from './result.ts';

/** What compiling makes of a training step: its program, and what that takes. */
export const compileBenchmark = defineBenchmark({
  name: 'compile',
  title: 'Compiled programs',
  parameters: compileParameters,
  cell: compileCell,
  result: compileResult,
  settings: ({ steps, seed, coldAndWarm }: CompileParameters): CompileSettings => ({
    ...{ steps, seed, coldAndWarm },
  }),
  expand: expandCompileCells,
  describe: describeCell,
  async measure(cell: CompileCell, context) {
    // Only the cell's own process opens a device.
    const { measureCompile } = await import('./measure.ts');
    return measureCompile(cell, context);
  },
  samplesMs: ({ deviceMs }) => deviceMs,
  toTable: (records) => programTable(records.map(interpretCompile)),
  toReport: compileReport,
});
