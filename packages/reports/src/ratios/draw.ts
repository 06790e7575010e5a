import type { RatioPlot, RatioRow } from '../model.ts';
import { FONT_FAMILY } from '../plot/font-family.ts';
import { FONT_SIZE, TITLE_LINE, TITLE_SIZE, type PlotSize } from '../plot/layout.ts';
import { partyColor } from '../plot/party-colors.ts';
import type { Palette } from '../plot/palette.ts';
import { anchor, haloOf, line, px, text } from '../plot/svg-marks.ts';
import { textWidth } from '../plot/text-width.ts';
import { shorten } from '../text/shorten.ts';
import { printable } from '../text/printable.ts';
import { escapeXml } from '../text/xml.ts';
import { BOLD, layOutRatios, type RatioLayout } from './layout.ts';
import { ratioOf } from './scale.ts';

const RADIUS = 6;
/** Pixels of a character, generously. */
const CHARACTER = 7;

/** The source of an `<svg>` element: a row a case, its dot joined to the line where both are level. */
export function drawRatios(plot: RatioPlot, palette: Palette, size: PlotSize): string {
  const layout = layOutRatios(plot, size);
  const { width, height } = layout;
  const alternative = escapeXml(inWords(plot, layout));
  return printable(
    [
      `<svg aria-label="${alternative}" xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ` +
        `viewBox="0 0 ${width} ${height}" font-family="${FONT_FAMILY}" font-size="${FONT_SIZE}" ` +
        `color="${palette.ink}" fill="${palette.ink}" font-variant-numeric="tabular-nums" role="img">`,
      ...(size.standalone ? [`<rect width="100%" height="100%" fill="${palette.background}"/>`] : []),
      ...titleLines(layout, palette),
      ...headLine(plot, layout, palette),
      ...tickTexts(layout, palette),
      ...plot.rows.flatMap((row, index) => rowMarks(plot, row, index, layout, palette)),
      '</svg>',
    ].join(''),
  );
}

/** What a reader hears who does not see it: every ratio. */
function inWords({ title, rows }: RatioPlot, { ratioTexts }: RatioLayout): string {
  return `${title}: ${rows.map(({ names }, index) => `${names.join(' ')} ${ratioTexts[index]}`).join(', ')}`;
}

function titleLines({ padding, title, caption }: RatioLayout, palette: Palette): string[] {
  const captionTop = padding + title.length * TITLE_LINE + 2;
  return [
    ...title.map((line, index) =>
      text(line, padding, padding + 14 + index * TITLE_LINE, `font-size="${TITLE_SIZE}" font-weight="600"`),
    ),
    ...caption.map((line, index) =>
      text(line, padding, captionTop + 14 + index * 18, `fill="${palette.muted}"`),
    ),
  ];
}

/** Above the line; where half of it has no room on one side, from there on. */
function levelPlace(size: number, at: number, [least, most]: readonly [number, number]) {
  if (at + size / 2 > most) return { x: most + CHARACTER, anchor: 'end' } as const;
  if (at - size / 2 < least) return { x: least, anchor: 'start' } as const;
  return { x: at, anchor: 'middle' } as const;
}

/** The heads of names and values, and who the line at 1 is. */
function headLine({ theirs }: RatioPlot, layout: RatioLayout, palette: Palette): string[] {
  const { headTop, columns, axis, width, padding } = layout;
  const isAbove = axis.left <= columns[0]!.x;
  const [ours] = palette.series;
  const party = partyColor(theirs, palette);
  const [first] = columns.filter(({ isValue }) => isValue);
  const heads = columns.map((column) => {
    const color = !column.isValue ? palette.muted : column === first ? ours : party;
    return text(
      column.head,
      column.x,
      headTop + 12 + (column.isValue ? layout.valuesDrop : 0),
      `fill="${color}"${anchor(column.isValue ? 'end' : 'start')}`,
    );
  });
  const level = `${theirs} = 1`;
  const place = levelPlace(BOLD * textWidth(level), axis.left + axis.scale.at(1), [
    isAbove ? padding : axis.left,
    width - padding - CHARACTER,
  ]);
  const style = `fill="${party}" font-weight="600"${anchor(place.anchor)}`;
  return [...heads, text(level, place.x, layout.rowsTop - (isAbove ? 6 : 24), style)];
}

function tickTexts({ axis, rowsTop, rowHeight, ratioTexts }: RatioLayout, palette: Palette): string[] {
  const y = rowsTop + ratioTexts.length * rowHeight + FONT_SIZE + 6;
  const style = `fill="${palette.muted}"${anchor('middle')}`;
  return axis.scale.ticks.map(({ ratio, text: label }) =>
    text(label, axis.left + axis.scale.at(ratio), y, style),
  );
}

function rowMarks(
  { theirs }: RatioPlot,
  row: RatioRow,
  index: number,
  layout: RatioLayout,
  palette: Palette,
): string[] {
  const { padding, width, rowsTop, rowHeight, namesDrop, linesDrop, dotDrop, columns, axis } = layout;
  const top = rowsTop + index * rowHeight;
  const [y, level] = [top + dotDrop, axis.left + axis.scale.at(1)];
  const names = columns.map(({ texts, x, isValue }, column) =>
    text(
      texts[index]!,
      x,
      top + namesDrop + (isValue ? layout.valuesDrop : 0),
      `${column === 0 ? 'font-weight="600"' : ''}${anchor(isValue ? 'end' : 'start')}`,
    ),
  );
  const party = partyColor(theirs, palette);
  const upright = (x: number, color: string, thickness: number) =>
    line(x, top + linesDrop, x, top + rowHeight, color, thickness);
  return [
    line(padding, top, width - padding, top, palette.grid),
    ...names,
    ...axis.scale.ticks.map(({ ratio }) => upright(axis.left + axis.scale.at(ratio), palette.grid, 1)),
    upright(level, party, 2),
    ...dotMarks(row, layout.ratioTexts[index]!, y, layout, palette),
  ];
}

/** Why a case has no ratio, on the side of the line that has more room. */
function missingText(
  why: string,
  level: number,
  y: number,
  axis: RatioLayout['axis'],
  style: string,
): string {
  const isLeft = level - axis.left > axis.right - level;
  const room = (isLeft ? level - axis.left : axis.right - level) - 10;
  const words = shorten(why, Math.max(3, Math.floor(room / CHARACTER)));
  return text(words, isLeft ? level - 10 : level + 10, y + 4, `${style}${anchor(isLeft ? 'end' : 'start')}`);
}

/** The ratio's interval as a pale band, its distance from the line, its dot, and its number on the far side of the dot. */
function dotMarks(
  row: RatioRow,
  label: string,
  y: number,
  { axis }: RatioLayout,
  palette: Palette,
): string[] {
  const ratio = ratioOf(row);
  const [level, halo] = [axis.left + axis.scale.at(1), haloOf(palette)];
  if (ratio === null) {
    return [missingText(label || 'not measured', level, y, axis, `fill="${palette.muted}" ${halo}`)];
  }
  const x = axis.left + axis.scale.at(ratio);
  const [color] = palette.series;
  const ends = [row.low ?? ratio, row.high ?? ratio]
    .map((end) => axis.left + axis.scale.at(end))
    .sort((a, b) => a - b);
  const isLeft = ratio <= 1;
  const place = isLeft ? Math.min(...ends, x - RADIUS) - 6 : Math.max(...ends, x + RADIUS) + 6;
  return [
    `<rect x="${px(ends[0]!)}" y="${px(y - 5)}" width="${px(ends[1]! - ends[0]!)}" height="10" rx="5" fill="${color}" fill-opacity="0.25"/>`,
    line(x, y, level, y, color!, 3),
    `<circle cx="${px(x)}" cy="${px(y)}" r="${RADIUS}" fill="${color}" stroke="${palette.background}" stroke-width="1.5"/>`,
    text(
      label,
      place,
      y + 5,
      `fill="${color}" font-size="14" font-weight="700" ${halo}${anchor(isLeft ? 'end' : 'start')}`,
    ),
  ];
}
