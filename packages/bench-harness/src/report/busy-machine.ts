import { type Report, formatNumber } from '@roofline/reports';
import type { CellRecord } from '../records/record.ts';
import { withFirstResultsNotes } from './first-results-note.ts';
import { listSome } from './values-in-words.ts';

/** Above this share of a machine's processors, other work is likely to have lengthened times. */
const BUSY_SHARE = 0.1;

/** A remark on cells that were measured while other processes used the machine; null where there are none. */
export function busyMachineText(
  records: readonly CellRecord[],
  describe: (record: CellRecord) => string,
): string | null {
  const busy = records.flatMap((record) => {
    const { otherWork } = record;
    return otherWork && otherWork.busyCores > BUSY_SHARE * otherWork.cores ? [{ record, ...otherWork }] : [];
  });
  const [most] = busy.toSorted((a, b) => b.busyCores / b.cores - a.busyCores / a.cores);
  if (!most) return null;
  const which =
    busy.length === records.length ? '' : ` (${listSome(busy.map(({ record }) => describe(record)))})`;
  return (
    `The machine was busy while ${busy.length} of ${records.length} cells were measured${which}: other processes took up to ` +
    `${formatNumber(most.busyCores, 2)} of its ${most.cores} cores, so that times may be too long.`
  );
}

/** A report that says so below its first results. */
export function withBusyMachine(
  report: Report,
  records: readonly CellRecord[],
  describe: (record: CellRecord) => string,
): Report {
  const text = busyMachineText(records, describe);
  return withFirstResultsNotes(report, text === null ? [] : [{ kind: 'note', tone: 'warning', text }]);
}
