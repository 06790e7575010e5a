import { findingsTable } from '../../report/findings-table.ts';
import { defineBenchmark } from '../define-benchmark.ts';
import { isInstrumentCell, overheadSweep, type OverheadCell } from './parameters.ts';
import { instrumentFindings, instrumentTable } from './report/instruments.ts';
import { lead } from './report/lead.ts';
import { opsIn, type OverheadCells } from './report/measured.ts';
import { opFindings, opPlot, opTable } from './report/ops.ts';
import { overheadResult } from './result.ts';

/** What an eager op costs the host, how long the first one takes, and what instruments cost a step. */
export const overheadBenchmark = defineBenchmark({
  name: 'overhead',
  title: 'Overhead',
  ...overheadSweep,
  result: overheadResult,
  describe: describeOverheadCell,
  samplesMs(result) {
    if ('hostUs' in result) return result.hostUs.map((us) => us / 1000);
    // One sample a round: its steps under instruments.
    const { profile, memory } = result;
    return profile.deviceMs.map((profiledMs, round) => profiledMs + memory.deviceMs[round]!);
  },
  table: everyFinding,
  lead,
  findings: [opFindings, instrumentFindings],
  sections: [
    { id: 'ops', title: 'Ops', blocks: [opTable, opPlot] },
    {
      id: 'instruments',
      title: 'Instruments',
      text: [
        'Train steps without an instrument and recorded by `recordMemory()`, in turn; then profiled by `profile()` and, in ' +
          'turn with those, with a profiler at rest: a process that has profiled keeps its profiler attached. A plain step ' +
          'goes before each. A step is timed from an idle device to an idle device; what an instrument takes before and ' +
          'after it is in the column Read-out.',
      ],
      blocks: [instrumentTable],
    },
  ],
});

/** Everything that was found: the table of the study where there is one, else one finding a row. */
function everyFinding(cells: OverheadCells) {
  const [[ops], [instruments]] = [opTable(cells), instrumentTable(cells)];
  if (!ops || !instruments) return (ops ?? instruments)!;
  return findingsTable('overhead-findings', 'Overhead of eager ops and of instruments', [
    { name: 'ops', cells: opsIn(cells), table: [ops], finding: ['hostUs'] },
    {
      ...{ name: 'instruments', table: [instruments] },
      cells: cells.filter(({ cell }) => isInstrumentCell(cell)),
      finding: ['onMs', 'ratio', 'ratioInterval', 'microsecondsPerEvent'],
    },
  ]);
}

function describeOverheadCell(cell: OverheadCell): string {
  if (!isInstrumentCell(cell)) return cell.op;
  const { size, context, batch, dtype } = cell;
  return `instruments · ${size} · context ${context} · batch ${batch} · ${dtype}`;
}
