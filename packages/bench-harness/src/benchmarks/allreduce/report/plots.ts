import type { Plot } from '@roofline/reports';
import { plotsOf, seriesOf, type PlottedValue } from '../../../report/series.ts';
import { factsOf } from '../operations.ts';
import { sizeInWords } from '../sizes.ts';
import { mainOf, sideName, type CollectiveSide } from './measured.ts';

type Sides = readonly CollectiveSide[];

const giga = 1e9;
const ofSlowest = 'Of the slowest rank: medians; error bars from a fifth of the samples to four fifths.';

function time(side: CollectiveSide): PlottedValue {
  const main = mainOf(side);
  return main && { y: main.timeMs, low: main.lowMs, high: main.highMs };
}

/** Groups of sides by what names them, each from the least x to the most. */
function groups(sides: Sides, id: (side: CollectiveSide) => string, x: (side: CollectiveSide) => number) {
  return [...Map.groupBy(sides, id)].map(
    ([id, group]) => [id, group.toSorted((a, b) => x(a) - x(b))] as const,
  );
}

/** Time and bus bandwidth against size, a plot for each op, dtype and number of ranks. */
export function sizePlots(sides: Sides): Plot[] {
  const idOf = ({ cell: { op, dtype, ranks } }: CollectiveSide) => `${op}-${dtype}-${ranks}`;
  const size = ({ cell }: CollectiveSide) => cell.bytes / 1e6;
  return groups(sides, idOf, size).flatMap(([id, group]) => {
    const { op, dtype, ranks } = group[0]!.cell;
    const title = `${op}, ${ranks} ranks, ${dtype}, ${factsOf[op].compared}`;
    const shared = { x: { label: 'Size', unit: 'MB', scale: 'log' }, marks: 'line' } as const;
    const roof = group.find(({ result }) => result?.roofBytesPerSecond)?.result!.roofBytesPerSecond;
    const bus = (side: CollectiveSide) => {
      const main = mainOf(side);
      return main && main.busBandwidth / giga;
    };
    return [
      ...plotsOf({
        ...{ id: `time-by-size-${id}`, title: `Time by size: ${title}`, caption: ofSlowest, ...shared },
        y: { label: 'Time', unit: 'ms', scale: 'log' },
        series: seriesOf({ name: sideName, x: size, y: time }, group),
      }),
      ...plotsOf({
        ...{ id: `busbw-by-size-${id}`, title: `Bus bandwidth by size: ${title}`, ...shared },
        y: { label: 'busbw', unit: 'GB/s', scale: 'linear' },
        series: seriesOf({ name: sideName, x: size, y: bus }, group),
        ...(roof && { references: [{ label: 'what a link reaches', y: roof / giga }] }),
      }),
    ];
  });
}

/** Time against the number of ranks, for each size; none where there is only one number. */
export function rankPlots(sides: Sides): Plot[] {
  const idOf = ({ cell: { op, dtype, bytes } }: CollectiveSide) => `${op}-${dtype}-${bytes}`;
  const ranks = ({ cell }: CollectiveSide) => cell.ranks;
  return groups(sides, idOf, ranks).flatMap(([id, group]) => {
    const { op, dtype, bytes } = group[0]!.cell;
    if (new Set(group.map(ranks)).size < 2) return [];
    return plotsOf({
      id: `time-by-ranks-${id}`,
      title: `Time by ranks: ${op}, ${sizeInWords(bytes)}, ${dtype}`,
      caption: ofSlowest,
      x: { label: 'Ranks', scale: 'linear' },
      y: { label: 'Time', unit: 'ms', scale: 'linear' },
      marks: 'line',
      series: seriesOf({ name: sideName, x: ranks, y: time }, group),
    });
  });
}
