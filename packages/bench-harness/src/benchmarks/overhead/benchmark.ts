import { defineBenchmark } from '../define-benchmark.ts';
import { overheadReport, overheadTable } from './report/report.ts';
import {
  expandOverheadCells,
  isInstrumentCell,
  overheadCell,
  overheadParameters,
  type OverheadCell,
  type OverheadParameters,
  type OverheadSettings,
} from './parameters.ts';
import { overheadResult, type OverheadResult } from './result.ts';

/** What an eager op costs the host, how long the first one takes, and what instruments cost a step. */
export const overheadBenchmark = defineBenchmark({
  name: 'overhead',
  title: 'Overhead of eager ops and of instruments',
  parameters: overheadParameters,
  cell: overheadCell,
  result: overheadResult,
  settings: ({ calls, repeats, warmup, seed }: OverheadParameters): OverheadSettings => ({
    calls,
    repeats,
    warmup,
    seed,
  }),
  expand: expandOverheadCells,
  describe: describeOverheadCell,
  async measure(cell: OverheadCell, context): Promise<OverheadResult> {
    // Only the cell's own process opens a device.
    if (isInstrumentCell(cell)) {
      const { measureInstruments } = await import('./measure-instruments.ts');
      return measureInstruments(cell, context);
    }
    const { measureOp } = await import('./measure-op.ts');
    return measureOp(cell, context);
  },
  samplesMs(result) {
    if ('hostUs' in result) return result.hostUs.map((us) => us / 1000);
    // One sample a round: its steps under instruments.
    const { profile, memory } = result;
    return profile.deviceMs.map((profiledMs, round) => profiledMs + memory.deviceMs[round]!);
  },
  toTable: overheadTable,
  toReport: overheadReport,
});

function describeOverheadCell(cell: OverheadCell): string {
  if (!isInstrumentCell(cell)) return cell.op;
  const { size, context, batch, dtype } = cell;
  return `instruments · ${size} · context ${context} · batch ${batch} · ${dtype}`;
}
