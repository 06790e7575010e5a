import type { Slice, Timeline } from '../model.ts';
import { colorGroups, type ColorGroups } from '../plot/color-groups.ts';
import { FONT_SIZE, type PlotSize } from '../plot/layout.ts';
import type { Palette } from '../plot/palette.ts';
import { line, px, text } from '../plot/svg-marks.ts';
import { textWidth } from '../plot/text-width.ts';
import { shorten } from '../text/shorten.ts';
import { escapeXml } from '../text/xml.ts';
import { formatDuration } from '../table/format.ts';
import { checkTimeline } from './check.ts';
import { rowsOf } from './rows.ts';
import { timeSpan } from './span.ts';
import { colorIn, framedSvg, TIME_AXIS_HEIGHT, timeAxis, timeFrame, type TimeFrame } from './time-frame.ts';

const ROW = 18;
const TRACK_GAP = 8;
/** Slices nearer than this are one mark: an image of ten thousand would show no more. */
const LEAST_PIXELS = 0.4;
const LONGEST_NAME = 22;

interface Mark {
  from: number;
  to: number;
  color: number;
  /** Null where several share the mark. */
  name: string | null;
  longestUs: number;
}

/** The source of an `<svg>` element: the tracks one below the other, each with as many lines as it needs. */
export function drawTimeline(timeline: Timeline, palette: Palette, { width }: PlotSize): string {
  checkTimeline(timeline);
  const slices = timeline.tracks.flatMap((track) => track.slices);
  const groups = colorGroups(slices.map((slice) => ({ ...slice, weight: slice.durationUs })));
  const names = timeline.tracks.map(({ name }) => shorten(name, LONGEST_NAME));
  const leftWidth = Math.max(0, ...names.map(textWidth)) + 10;
  const frame = timeFrame({ block: timeline, groups, span: timeSpan(timeline), width, leftWidth, palette });
  const marks: string[] = [];
  let top = frame.top;
  for (const [index, track] of timeline.tracks.entries()) {
    const rows = rowsOf(track);
    marks.push(text(names[index]!, 14, top + ROW / 2 + 4, `fill="${palette.muted}"`));
    for (const [row, of] of rows.entries())
      marks.push(...rowMarks(marksOf(of, groups, frame), top + row * ROW, palette));
    top += Math.max(1, rows.length) * ROW + TRACK_GAP;
    marks.push(line(frame.left, top - TRACK_GAP / 2, frame.right, top - TRACK_GAP / 2, palette.grid));
  }
  const axis = timeAxis(frame, top, palette);
  const total = `${timeline.title}: ${formatDuration((frame.endUs - frame.startUs) / 1000)}`;
  const picture = { height: top + TIME_AXIS_HEIGHT, label: total, marks: [...axis, ...marks] };
  return framedSvg(frame, picture, palette);
}

/** The slices of a line from the left, those that no image could tell apart together. */
function marksOf(slices: readonly Slice[], groups: ColorGroups, frame: TimeFrame): Mark[] {
  const marks: Mark[] = [];
  for (const slice of slices) {
    const color = groups.colorOf(slice);
    const [from, to] = [frame.at(slice.startUs), frame.at(slice.startUs + slice.durationUs)];
    const last = marks.at(-1);
    if (last !== undefined && isOneWith(last, { from, to, color })) {
      // Of several that share a mark, the longest has its colour.
      if (slice.durationUs > last.longestUs) [last.color, last.longestUs] = [color, slice.durationUs];
      last.to = Math.max(last.to, to);
      last.name = null;
    } else marks.push({ from, to, color, name: slice.name, longestUs: slice.durationUs });
  }
  return marks;
}

/** Whether no image could tell a slice from the mark before it. */
function isOneWith(last: Mark, { from, to, color }: Pick<Mark, 'from' | 'to' | 'color'>): boolean {
  if (from - last.to >= LEAST_PIXELS) return false;
  const isSmall = Math.min(to - from, last.to - last.from) < LEAST_PIXELS;
  return to - last.from < LEAST_PIXELS || (isSmall && color === last.color);
}

function rowMarks(marks: readonly Mark[], top: number, palette: Palette): string[] {
  return marks.flatMap(({ from, to, color, name, longestUs }) => {
    const width = Math.max(LEAST_PIXELS, to - from);
    const title =
      name === null ? '' : `<title>${escapeXml(`${name}: ${formatDuration(longestUs / 1000)}`)}</title>`;
    const rect =
      `<rect x="${px(from)}" y="${px(top)}" width="${Number(width.toFixed(2))}" height="${ROW - 2}" ` +
      `fill="${colorIn(palette, color)}"${title === '' ? '/>' : `>${title}</rect>`}`;
    if (name === null || textWidth(name) + 8 > width) return [rect];
    const ink = color === 0 ? palette.ink : palette.background;
    return [rect, text(name, from + 4, top + ROW / 2 + FONT_SIZE / 2 - 3, `fill="${ink}"`)];
  });
}
