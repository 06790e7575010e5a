import { formatPercent, type Note } from '@roofline/reports';
import type { CellRecord } from '../records/record.ts';
import type { Throttling } from '../records/throttling.ts';
import { listSome } from './values-in-words.ts';

/** Below this share of the time a limit lengthens no time by what anyone would see. */
const LEAST_SHARE = 0.01;

interface Limit {
  /** How much of it a cell had; 0 for none worth a word, and for what is not known. */
  readonly amount: (throttling: Throttling) => number;
  readonly text: (most: number, which: string) => string;
  readonly tone: 'info' | 'warning';
}

const limits: readonly Limit[] = [
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
    amount: ({ cpuSlowdowns }) => cpuSlowdowns ?? 0,
    tone: 'warning',
    text: (most, which) =>
      `Heat slowed the CPU down up to ${most === 1 ? 'once' : `${most} times`} while ${which}, so that times may be too long: ` +
      'cool it better.',
  },
];

function shareOf(limit: keyof NonNullable<Throttling['gpu']>): Limit['amount'] {
  return ({ gpu }) => {
    const share = gpu?.[limit] ?? 0;
    return share < LEAST_SHARE ? 0 : share;
  };
}

/** What held clocks down while cells were measured, a remark for each kind; none where nothing did or is known to. */
export function throttledClocksNotes(
  records: readonly CellRecord[],
  describe: (record: CellRecord) => string,
): Note[] {
  return limits.flatMap(({ amount, text, tone }) => {
    const held = records.flatMap((record) => {
      const most = record.throttling ? amount(record.throttling) : 0;
      return most > 0 ? [{ record, most }] : [];
    });
    if (held.length === 0) return [];
    const names =
      held.length === records.length ? '' : ` (${listSome(held.map(({ record }) => describe(record)))})`;
    const which = `${held.length} of ${records.length} cells were measured${names}`;
    return [{ kind: 'note', tone, text: text(Math.max(...held.map(({ most }) => most)), which) }];
  });
}
