import type { Report } from '@roofline/reports';
import type { CellRecord } from '../records/record.ts';
import { busyMachineNotes } from './busy-machine.ts';
import { mixedCodeNotes } from './mixed-code.ts';
import { throttledClocksNotes } from './throttled-clocks.ts';

/** A report that says below its first results, where the numbers stand that it is about, what may have changed them. */
export function withCircumstances(
  report: Report,
  records: readonly CellRecord[],
  describe: (record: CellRecord) => string,
): Report {
  const notes = [
    ...mixedCodeNotes(records),
    ...busyMachineNotes(records, describe),
    ...throttledClocksNotes(records, describe),
  ];
  const [first, ...others] = report.sections;
  if (notes.length === 0 || !first) return report;
  return { ...report, sections: [{ ...first, blocks: [...first.blocks, ...notes] }, ...others] };
}
