import { formatNumber, formatPercent, type Note } from '@roofline/reports';
import type { CellRecord } from '../records/record.ts';
import type { Throttling } from '../records/throttling.ts';
import { listSome } from './values-in-words.ts';

/** Something that lengthens times, or may. */
interface Disturbance {
  /** How much of it a cell had; 0 where it is negligible or unknown. */
  readonly amount: (record: CellRecord) => number;
  readonly text: (most: number, which: string, record: CellRecord) => string;
  readonly tone: 'info' | 'warning';
}

type Describe = (record: CellRecord) => string;

/** Above this share of a machine's processors, other work is likely to have lengthened times. */
const BUSY_SHARE = 0.1;

const otherWork: Disturbance = {
  amount: ({ otherWork: work }) =>
    work && work.busyCores > BUSY_SHARE * work.cores ? work.busyCores / work.cores : 0,
  tone: 'warning',
  text: (_, which, { otherWork: work }) =>
    `The machine was busy while ${which}: other processes took up to ${formatNumber(work!.busyCores, 2)} of its ` +
    `${work!.cores} cores, so that times may be too long.`,
};

const limits: readonly Disturbance[] = [
  {
    amount: shareOf('power'),
    tone: 'info',
    text: (most, which) =>
      `A power limit held the GPU's clocks down for up to ${formatPercent(most)} of the time while ${which}; large matrix ` +
      'products reach it as a rule.',
  },
  {
    amount: shareOf('thermal'),
    tone: 'warning',
    text: (most, which) =>
      `Heat held the GPU's clocks down for up to ${formatPercent(most)} of the time while ${which}, so that times may be too ` +
      'long: cool it better.',
  },
  {
    amount: shareOf('hardware'),
    tone: 'warning',
    text: (most, which) =>
      `The GPU's hardware held its clocks down for up to ${formatPercent(most)} of the time while ${which}, so that times may ` +
      'be too long: its supply does not suffice, or a brake of the machine is on (`nvidia-smi -q -d PERFORMANCE`).',
  },
  {
    amount: ({ throttling }) => throttling?.cpuSlowdowns ?? 0,
    tone: 'warning',
    text: (most, which) =>
      `Heat slowed the CPU down up to ${most === 1 ? 'once' : `${most} times`} while ${which}, so that times may be too long: ` +
      'cool it better.',
  },
];

/** Below this share of the time a limit lengthens no time by what anyone would see. */
const LEAST_SHARE = 0.01;

function shareOf(limit: keyof NonNullable<Throttling['gpu']>): Disturbance['amount'] {
  return ({ throttling }) => {
    const share = throttling?.gpu?.[limit] ?? 0;
    return share < LEAST_SHARE ? 0 : share;
  };
}

/** Whether other processes used the machine while cells were measured; empty where none did. */
export function busyMachineNotes(records: readonly CellRecord[], describe: Describe): Note[] {
  return notesOn(otherWork, records, describe);
}

/** What held clocks down while cells were measured, a note for each cause; empty where nothing is known to have. */
export function throttledClocksNotes(records: readonly CellRecord[], describe: Describe): Note[] {
  return limits.flatMap((limit) => notesOn(limit, records, describe));
}

function notesOn(
  { amount, text, tone }: Disturbance,
  records: readonly CellRecord[],
  describe: Describe,
): Note[] {
  const disturbed = records.filter((record) => amount(record) > 0);
  const [worst] = disturbed.toSorted((a, b) => amount(b) - amount(a));
  if (!worst) return [];
  const names = disturbed.length === records.length ? '' : ` (${listSome(disturbed.map(describe))})`;
  const which = `${disturbed.length} of ${records.length} cells were measured${names}`;
  return [{ kind: 'note', tone, text: text(amount(worst), which, worst) }];
}
