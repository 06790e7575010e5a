import { defineBenchmark } from '../define-benchmark.ts';
import { stepParameters } from '../e2e/parameters.ts';
import {
  compileParameters,
  expandCompileCells,
  type CompileParameters,
  type CompileSettings,
} from './parameters.ts';
import { arenaFinding, compileFinding, kernelFinding } from './report/findings.ts';
import { lead } from './report/lead.ts';
import { callSections, fusedTable, programTable, unfusedNotes } from './report/tables.ts';
import { compileResult } from './result.ts';

/** What compiling makes of a training step: its program, and what that takes. */
export const compileBenchmark = defineBenchmark({
  name: 'compile',
  title: 'Compiled programs',
  parameters: compileParameters,
  cell: stepParameters,
  result: compileResult,
  settings: ({ steps, seed, coldAndWarm }: CompileParameters): CompileSettings => ({
    ...{ steps, seed, coldAndWarm },
  }),
  expand: expandCompileCells,
  samplesMs: ({ deviceMs }) => deviceMs,
  table: programTable,
  overview: [fusedTable, unfusedNotes],
  lead,
  findings: [kernelFinding, arenaFinding, compileFinding],
  sections: [
    {
      id: 'compiled-programs',
      title: 'Programs',
      blocks: [(cells) => [programTable(cells)], fusedTable],
    },
    callSections,
  ],
});
