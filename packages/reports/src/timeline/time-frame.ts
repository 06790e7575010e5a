import { FONT_FAMILY } from '../plot/font-family.ts';
import type { ColorGroups } from '../plot/color-groups.ts';
import { FONT_SIZE, TITLE_LINE, TITLE_SIZE } from '../plot/layout.ts';
import type { Palette } from '../plot/palette.ts';
import { anchor, line, px, text } from '../plot/svg-marks.ts';
import { textWidth } from '../plot/text-width.ts';
import { linearTicks, tickTexts } from '../plot/ticks.ts';
import { fittingUnit } from '../table/units.ts';
import { printable } from '../text/printable.ts';
import { wrapWords } from '../text/terminal-text.ts';
import { escapeXml } from '../text/xml.ts';

/** What is drawn over time. */
export interface TimeFrame {
  readonly width: number;
  /** Of the part between the axes. */
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly startUs: number;
  readonly endUs: number;
  /** Pixels from the left. */
  at(timeUs: number): number;
  readonly head: string;
}

const PADDING = 14;
const LEGEND_LINE = 20;
/** Pixels of a character of a title. */
const TITLE_CHARACTER = 8;

interface Framed {
  readonly block: { readonly title: string; readonly caption?: string };
  readonly groups: ColorGroups;
  readonly span: readonly [startUs: number, endUs: number];
  readonly width: number;
  /** Pixels that the texts on the left need. */
  readonly leftWidth: number;
  readonly palette: Palette;
}

/** The title, the legend and the scale of time, above which `top` begins. */
export function timeFrame({ block, groups, span, width, leftWidth, palette }: Framed): TimeFrame {
  const columns = Math.floor((width - 2 * PADDING) / TITLE_CHARACTER);
  const title = wrapWords(block.title, columns).split('\n');
  const caption = block.caption === undefined ? [] : wrapWords(block.caption, columns).split('\n');
  const afterTitle = PADDING + 8 + title.length * TITLE_LINE + caption.length * 16;
  const legend = layOutLegend(groups, width, afterTitle);
  const [left, right] = [PADDING + leftWidth, width - PADDING];
  const [startUs, endUs] = span;
  const at = (timeUs: number) => left + ((right - left) * (timeUs - startUs)) / (endUs - startUs || 1);
  const head = [
    ...title.map((words, index) =>
      text(words, PADDING, PADDING + 12 + index * TITLE_LINE, `font-size="${TITLE_SIZE}" font-weight="600"`),
    ),
    ...caption.map((words, index) =>
      text(words, PADDING, PADDING + 10 + title.length * TITLE_LINE + index * 16, `fill="${palette.muted}"`),
    ),
    ...legend.flatMap(({ label, color, x, y }) => [
      `<rect x="${px(x)}" y="${px(y - 10)}" width="10" height="10" fill="${colorIn(palette, color)}"/>`,
      text(label, x + 15, y, ''),
    ]),
  ].join('');
  const top = legend.reduce((most, { y }) => Math.max(most, y), afterTitle - 12) + 14;
  return { width, left, right, top, startUs, endUs, at, head };
}

function layOutLegend({ legend }: ColorGroups, width: number, afterTitle: number) {
  let [x, y] = [PADDING, afterTitle + 6];
  return legend.map(({ label, color }) => {
    const itemWidth = 15 + textWidth(label) + 18;
    if (x > PADDING && x + itemWidth > width) [x, y] = [PADDING, y + LEGEND_LINE];
    const placed = { label, color, x, y };
    x += itemWidth;
    return placed;
  });
}

/** The colour of a group: 0 is that of what has none. */
export function colorIn(palette: Palette, color: number): string {
  return color === 0 ? palette.grid : palette.series[color - 1]!;
}

/** Lines and texts of the time axis, whose line is at `bottom`; time begins with 0. */
export function timeAxis(frame: TimeFrame, bottom: number, palette: Palette): string[] {
  const spanMs = (frame.endUs - frame.startUs) / 1000;
  const { name, size } = fittingUnit('duration', spanMs)!;
  const ticks = linearTicks(0, spanMs / size, 6).filter((tick) => tick * size <= spanMs * 1.0001);
  const texts = tickTexts(ticks, 'linear');
  const at = (tick: number) => frame.at(frame.startUs + tick * size * 1000);
  return [
    ...ticks.map((tick) => line(at(tick), frame.top, at(tick), bottom, palette.grid)),
    ...ticks.map((tick, index) =>
      text(texts[index]!, at(tick), bottom + FONT_SIZE + 6, `fill="${palette.muted}"${anchor('middle')}`),
    ),
    text(
      `Time (${name})`,
      (frame.left + frame.right) / 2,
      bottom + 2 * FONT_SIZE + 16,
      anchor('middle').trim(),
    ),
  ];
}

/** Below the time axis. */
export const TIME_AXIS_HEIGHT = 2 * FONT_SIZE + 16 + PADDING;

/** The source of an `<svg>` element. */
export function framedSvg(
  { width, head }: TimeFrame,
  { height, label, marks }: { height: number; label: string; marks: readonly string[] },
  palette: Palette,
): string {
  return printable(
    `<svg aria-label="${escapeXml(label)}" xmlns="http://www.w3.org/2000/svg" width="${width}" height="${px(height)}" ` +
      `viewBox="0 0 ${width} ${px(height)}" font-family="${FONT_FAMILY}" font-size="${FONT_SIZE}" ` +
      `color="${palette.ink}" fill="${palette.ink}" font-variant-numeric="tabular-nums" role="img">` +
      `<rect width="100%" height="100%" fill="${palette.background}"/>${head}${marks.join('')}</svg>`,
  );
}
