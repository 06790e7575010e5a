import type { Table } from '@roofline/reports';
import { isCausal, shapeParameters } from '../../../attention/shape.ts';
import type { Pass } from '../../../attention/work.ts';
import { quantile } from '../../../measuring/statistics.ts';
import { tableOf, type ColumnOf, type TableOf } from '../../../report/declared-table.ts';
import { achievedColumns, column, ratioColumns } from '../../../report/standard-columns.ts';
import { nameOf, overFlash, overPlain, timeOf, type MeasuredPass, type TimedPass } from './measured.ts';

const columns: readonly ColumnOf<MeasuredPass>[] = [
  column.text('implementation', 'Attention', (each) => (each.timed ? nameOf(each) : null), {
    ...{ emphasis: 'strong', everyRow: true },
  }),
  column.text('pass', 'Pass', { everyRow: true }),
  column.ms('medianMs', 'Median', (each) => timeOf(each)?.time.median, { emphasis: 'strong' }),
  column.ms('lowMs', '20 %', (each) => lowOf(each, 0.2), {
    ...{ qualifies: 'medianMs', description: 'A fifth of the samples are shorter.' },
  }),
  column.ms('highMs', '80 %', (each) => lowOf(each, 0.8), {
    ...{ qualifies: 'medianMs', description: 'A fifth of the samples are longer.' },
  }),
  ...achievedColumns<MeasuredPass>(
    (each) => timeOf(each)?.flopsPerSecond,
    'FLOPs by formula, a causal mask halving them, over the median time.',
  ),
  column.percent('roofShare', 'Of the roof', (each) => timeOf(each)?.roofShare, {
    ...{ emphasis: 'roof', shown: 'filled' },
    description: 'The least time that the measured ceilings allow for this work, over the median.',
  }),
  column.ratio('overPlain', 'Over plain', (each) => overPlain(each), {
    ...{ shown: 'filled' },
    description: 'How many times as fast as plain attention of the same side: ratio of the medians.',
  }),
  ...ratioColumns<MeasuredPass>('ratio', 'Flash / this', overFlash, {
    description: 'Time of our flash attention over that of this one: below 1 ours is faster.',
    interval: 'Of the ratio, by bootstrap over the samples of both.',
  }),
  column.bytes(
    'peakBytes',
    'Peak memory',
    ({ timed: { outcome } }) => (outcome.status === 'ok' ? outcome.peakBytes : null),
    {
      description: 'Most bytes held at once by operands and one forward and backward pass.',
    },
  ),
];

/** The value below which so many of the samples lie, in milliseconds. */
export function lowOf(each: MeasuredPass, share: number): number | undefined {
  const time = timeOf(each);
  return time ? quantile(time.samplesMs, share) : undefined;
}

const table: Omit<TableOf<MeasuredPass>, 'id' | 'title'> = {
  ...{ parameters: shapeParameters, columns },
  caption: (passes) => (passes.every(({ cell }) => isCausal(cell)) ? 'Under a causal mask.' : ''),
  facts: (each) => {
    const ratio = overFlash(each);
    return {
      ...{ side: each.timed.side, attention: each.timed.attention },
      ...{ samples: timeOf(each)?.samplesMs.length, floorMs: timeOf(each)?.floorMs },
      ...(ratio && { ratioLow: ratio.low, ratioHigh: ratio.high }),
    };
  },
};

const shownOfPass = columns.map(({ key }) => key).filter((key) => key !== 'pass' && key !== 'peakBytes');

/** One row for each attention and pass of each cell. */
export function flashTable(passes: readonly TimedPass[]): Table {
  const shows = columns.map(({ key }) => key).filter((key) => key !== 'peakBytes');
  return tableOf({ ...table, id: 'times-in-turn', title: 'Attention, in turn', shows }, asked(passes));
}

/** One row for each attention in one pass. */
export function passTable(passes: readonly TimedPass[], pass: Pass): Table {
  const ofPass = passes.filter((each) => each.pass === pass);
  const shows = shownOfPass;
  return tableOf({ ...table, id: `${pass}-times`, title: passTitles[pass], shows }, asked(ofPass));
}

/** The most that each attention held, whatever passes were timed. */
export function memoryTable(passes: readonly TimedPass[]): Table {
  const ofFirst = passes.filter(({ pass }) => pass === passes[0]?.pass);
  const shows = ['implementation', 'peakBytes'];
  return tableOf({ ...table, id: 'peak-memory', title: 'Peak memory', shows }, asked(ofFirst));
}

/** Only those that were timed are asked for values, but for what every row has. */
function asked(passes: readonly TimedPass[]): readonly MeasuredPass[] {
  return passes as readonly MeasuredPass[];
}

export const passTitles: Readonly<Record<Pass, string>> = {
  forward: 'Forward',
  backward: 'Backward',
  both: 'Forward and backward together',
};
