import { WIDE_SPREAD, type Block } from '@roofline/reports';
import { summarize, type Summary } from '../measuring/statistics.ts';
import { listSome } from './values-in-words.ts';

/** A cell, and for each thing that was timed its samples in the order in which they were taken. */
export interface TimedCell {
  readonly name: string;
  readonly samplesMs: readonly (readonly number[])[];
}

/** Warns of times that say little: of those that scatter, and of those that were taken before the cell was warm. */
export function spreadNotes(cells: readonly TimedCell[]): Block[] {
  const warming = cells.filter(({ samplesMs }) => samplesMs.some(becameFaster));
  const wide = cells.filter(
    (cell) => !warming.includes(cell) && cell.samplesMs.some((samples) => hasWideSpread(summarize(samples))),
  );
  return [
    ...note(wide, (names) => `The spread is wide (standard deviation over 5 % of the mean) for ${names}.`),
    ...note(
      warming,
      (names) =>
        `The warm-up was too short for ${names}: it became faster while it was timed (each of the last third of the ` +
        'samples is more than 5 % below any of the first). Raise --warmup: JavaScript that queues work for a GPU is warm ' +
        'after some hundred steps.',
    ),
  ];
}

function note(cells: readonly TimedCell[], text: (names: string) => string): Block[] {
  if (cells.length === 0) return [];
  return [{ kind: 'note', tone: 'warning', text: text(listSome(cells.map(({ name }) => name))) }];
}

/** Standard deviation over mean. */
export function relativeSpread(summary: Summary): number {
  return summary.mean === 0 ? 0 : summary.std / summary.mean;
}

export function hasWideSpread(summary: Summary): boolean {
  return relativeSpread(summary) > WIDE_SPREAD;
}

/** So few that a third of them may lie below another by chance are not judged. */
const FEWEST_JUDGED = 9;

/** Whether each of the last third of the samples, in the order they were taken, is over 5 % below any of the first. */
export function becameFaster(samples: readonly number[]): boolean {
  if (samples.length < FEWEST_JUDGED) return false;
  const third = Math.floor(samples.length / 3);
  return Math.max(...samples.slice(-third)) < (1 - WIDE_SPREAD) * Math.min(...samples.slice(0, third));
}
