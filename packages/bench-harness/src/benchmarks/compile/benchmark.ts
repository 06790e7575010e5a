import { defineBenchmark } from '../define-benchmark.ts';
import { compileSweep } from './parameters.ts';
import { arenaFinding, compileFinding, kernelFinding } from './report/findings.ts';
import { lead } from './report/lead.ts';
import { callSections, fusedTable, programTable, unfusedNotes } from './report/tables.ts';
import { compileResult } from './result.ts';

/** What compiling makes of a training step: its program, and what that takes. */
export const compileBenchmark = defineBenchmark({
  name: 'compile',
  title: 'Compiled programs',
  ...compileSweep,
  result: compileResult,
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
