import { formatNumber, type Note } from '@roofline/reports';
import type { CellRecord } from '../records/record.ts';
import { listSome } from './values-in-words.ts';

/** Above this share of a machine's processors, other work is likely to have lengthened times. */
const BUSY_SHARE = 0.1;

/** A remark on cells that were measured while other processes used the machine; none where there are none. */
export function busyMachineNotes(
  records: readonly CellRecord[],
  describe: (record: CellRecord) => string,
): Note[] {
  const busy = records.flatMap((record) => {
    const { otherWork } = record;
    return otherWork && otherWork.busyCores > BUSY_SHARE * otherWork.cores ? [{ record, ...otherWork }] : [];
  });
  const [most] = busy.toSorted((a, b) => b.busyCores / b.cores - a.busyCores / a.cores);
  if (!most) return [];
  const which =
    busy.length === records.length ? '' : ` (${listSome(busy.map(({ record }) => describe(record)))})`;
  const text =
    `The machine was busy while ${busy.length} of ${records.length} cells were measured${which}: other processes took up to ` +
    `${formatNumber(most.busyCores, 2)} of its ${most.cores} cores, so that times may be too long.`;
  return [{ kind: 'note', tone: 'warning', text }];
}
