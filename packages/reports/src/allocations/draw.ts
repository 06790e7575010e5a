import type { Allocation, AllocationPlot } from '../model.ts';
import { colorGroups, type ColorGroups } from '../plot/color-groups.ts';
import type { PlotSize } from '../plot/layout.ts';
import type { Palette } from '../plot/palette.ts';
import { anchor, line, px, text } from '../plot/svg-marks.ts';
import { linearTicks, tickTexts } from '../plot/ticks.ts';
import { formatBytes } from '../table/format.ts';
import { fittingUnit } from '../table/units.ts';
import {
  colorIn,
  framedSvg,
  TIME_AXIS_HEIGHT,
  timeAxis,
  timeFrame,
  type TimeFrame,
} from '../timeline/time-frame.ts';
import { checkAllocations } from './check.ts';
import { findPeak } from './peak.ts';

/** Moments that an image tells apart. */
const MOMENTS = 600;
const Y_AXIS = 64;
const LEAST_PLOT = 160;

/** What is held at one moment, by colour. */
type Levels = readonly number[];

/** The source of an `<svg>` element: what is held over time, by category, with the peak and what was reserved. */
export function drawAllocations(plot: AllocationPlot, palette: Palette, { width, height }: PlotSize): string {
  checkAllocations(plot);
  const { allocations, reserved = [] } = plot;
  const groups = colorGroups(
    allocations.map(({ label, category, bytes }) => ({ name: label, category, weight: bytes })),
  );
  const frame = timeFrame({ block: plot, groups, span: spanOf(plot), width, leftWidth: Y_AXIS, palette });
  const bottom = Math.max(height - TIME_AXIS_HEIGHT, frame.top + LEAST_PLOT);
  const peak = findPeak(allocations);
  const most = reserved.reduce((highest, [, bytes]) => Math.max(highest, bytes), peak.bytes) || 1;
  const { name, size } = fittingUnit('bytes', most)!;
  const ticks = linearTicks(0, most / size, 5);
  const at = (bytes: number) => bottom - ((bottom - frame.top) * bytes) / (ticks.at(-1)! * size);
  const texts = tickTexts(ticks, 'linear');
  const marks = [
    ...timeAxis(frame, bottom, palette),
    ...ticks.flatMap((tick, index) => [
      line(frame.left, at(tick * size), frame.right, at(tick * size), palette.grid),
      text(texts[index]!, frame.left - 8, at(tick * size) + 4, `fill="${palette.muted}"${anchor('end')}`),
    ]),
    text(name, 14, frame.top + 4, ''),
    ...areas(levelsOf(allocations, groups, frame), frame, at, palette),
    ...reservedLine(reserved, frame, at, palette),
    line(frame.at(peak.timeUs), at(peak.bytes), frame.at(peak.timeUs), bottom, palette.ink),
  ];
  const label = `${plot.title}: at most ${formatBytes(peak.bytes)}`;
  return framedSvg(frame, { height: bottom + TIME_AXIS_HEIGHT, label, marks }, palette);
}

function spanOf({ allocations, reserved = [] }: AllocationPlot): [number, number] {
  const times = [
    ...allocations.flatMap(({ startUs, endUs }) => [startUs, endUs ?? startUs]),
    ...reserved.map(([timeUs]) => timeUs),
  ];
  const start = times.reduce((least, time) => Math.min(least, time), times[0] ?? 0);
  const end = times.reduce((latest, time) => Math.max(latest, time), start);
  return [start, end > start ? end : start + 1];
}

/** What each colour holds at each moment: of all times that one stands for, that at which most was held. */
function levelsOf(allocations: readonly Allocation[], groups: ColorGroups, frame: TimeFrame): Levels[] {
  const events = allocations
    .flatMap((each) => {
      const color = groups.colorOf({ name: each.label, category: each.category });
      const start = { timeUs: each.startUs, color, change: each.bytes };
      return each.endUs === null ? [start] : [start, { timeUs: each.endUs, color, change: -each.bytes }];
    })
    .sort((a, b) => a.timeUs - b.timeUs || a.change - b.change);
  const held = Array.from({ length: 1 + Math.max(0, ...events.map(({ color }) => color)) }, () => 0);
  const total = (levels: Levels) => levels.reduce((sum, bytes) => sum + bytes, 0);
  let next = 0;
  return Array.from({ length: MOMENTS }, (_, moment) => {
    const isLast = moment === MOMENTS - 1;
    const untilUs = isLast
      ? Infinity
      : frame.startUs + ((frame.endUs - frame.startUs) * (moment + 1)) / MOMENTS;
    let most: Levels = [...held];
    while (next < events.length && events[next]!.timeUs < untilUs) {
      const { color, change } = events[next]!;
      held[color]! += change;
      next += 1;
      if (change > 0 && total(held) > total(most)) most = [...held];
    }
    return most;
  });
}

function areas(
  levels: readonly Levels[],
  frame: TimeFrame,
  at: (bytes: number) => number,
  palette: Palette,
): string[] {
  const x = (moment: number) => px(frame.left + ((frame.right - frame.left) * moment) / MOMENTS);
  const firstOf = (color: number) => levels.findIndex((held) => held[color]! > 0);
  // What is there first lies below.
  return [...levels[0]!.keys()]
    .sort((a, b) => firstOf(a) - firstOf(b))
    .flatMap((color, order, all) => {
      if (firstOf(color) < 0) return [];
      const below = (held: Levels) => all.slice(0, order).reduce((sum, each) => sum + held[each]!, 0);
      const edge = (height: (held: Levels) => number) =>
        levels.map(
          (held, moment) => `${x(moment)},${px(at(height(held)))} ${x(moment + 1)},${px(at(height(held)))}`,
        );
      const upper = edge((held) => below(held) + held[color]!);
      const lower = levels
        .map((held, moment) => `${x(moment + 1)},${px(at(below(held)))} ${x(moment)},${px(at(below(held)))}`)
        .reverse();
      return [`<polygon points="${[...upper, ...lower].join(' ')}" fill="${colorIn(palette, color)}"/>`];
    });
}

function reservedLine(
  reserved: readonly [number, number][],
  frame: TimeFrame,
  at: (bytes: number) => number,
  palette: Palette,
): string[] {
  if (reserved.length === 0) return [];
  const points = reserved.flatMap(([timeUs, bytes], index) => {
    const endUs = reserved[index + 1]?.[0] ?? frame.endUs;
    return [`${px(frame.at(timeUs))},${px(at(bytes))}`, `${px(frame.at(endUs))},${px(at(bytes))}`];
  });
  const [first] = reserved;
  return [
    `<polyline points="${points.join(' ')}" fill="none" stroke="${palette.ink}" stroke-width="1.25" stroke-dasharray="5 4"/>`,
    text('reserved', frame.at(first![0]) + 4, at(first![1]) - 5, ''),
  ];
}
