import type { Markish } from '@observablehq/plot';
import { observablePlot } from '../plot/drawing-libraries.ts';
import type { RooflinePlot } from '../model.ts';
import { drawSvg } from '../plot/draw.ts';
import { X_INSET, type PlotSize } from '../plot/layout.ts';
import type { Palette } from '../plot/palette.ts';
import { colorOf, symbolOf } from '../plot/series.ts';
import { textWidth } from '../plot/text-width.ts';
import { formatNumber } from '../table/format.ts';
import { measuredText } from '../table/number-text.ts';
import { roofShareText } from '../table/roof-share.ts';
import { shortSymbol } from '../text/short-symbol.ts';
import { shorten } from '../text/shorten.ts';
import { frameOf, labelDots, pixelsOf } from './frame.ts';
import type { Box, Dot, DotLabel, RooflineFrame, Segment } from './frame.ts';
import { rateUnit } from './performance.ts';

/** Characters of a name next to its dot. */
const LONGEST_LABEL = 30;
/** Pixels between ceilings whose names both stand above them. */
const NAME_HEIGHT = 18;

export function drawRoofline(roofline: RooflinePlot, palette: Palette, size: PlotSize): string {
  const frame = frameOf(roofline, size);
  const names = ceilingNames(roofline, frame);
  const labels = labelDots(
    frame,
    (name) => shorten(shortSymbol(name), LONGEST_LABEL),
    [...names.map(({ box }) => box), slopeNameBox(roofline, frame.layout)],
    roofSegments(roofline, frame, names),
  );
  return drawSvg(frame.plot, frame.layout, palette, [
    ...roofMarks(roofline, frame, names, palette),
    ...dotMarks(roofline, frame, palette),
    ...labelMarks(labels, palette),
  ]);
}

/** What a ceiling is called, and where. */
interface CeilingName {
  readonly rate: number;
  readonly text: string;
  /** Pixels from its line to the middle of its name. */
  readonly drop: number;
  readonly box: Box;
}

/** From the lowest; one that the next leaves no room above it is named below. */
function ceilingNames(roofline: RooflinePlot, { layout }: RooflineFrame): CeilingName[] {
  const unit = rateUnit(roofline);
  const [, right] = layout.x.domain as [number, number];
  const peaks = roofline.ceilings
    .map(({ label, flopsPerSecond }) => ({ label, rate: flopsPerSecond / unit.size }))
    .sort((a, b) => a.rate - b.rate);
  const tops = peaks.map(({ rate }) => pixelsOf(layout, right, rate));
  return peaks.map(({ label, rate }, index) => {
    const { left: end, top } = tops[index]!;
    const text = `${label}: ${formatNumber(rate, 3)} ${unit.name}`;
    const above = tops[index + 1];
    const drop = above !== undefined && top - above.top < NAME_HEIGHT ? 10 : -9;
    const box = { left: end - textWidth(text), right: end, top: top + drop - 7, bottom: top + drop + 7 };
    return { rate, text, drop, box };
  });
}

/** The lines of the roof as they are drawn. */
function roofSegments(
  { bandwidth, ...roofline }: RooflinePlot,
  { layout }: RooflineFrame,
  names: readonly CeilingName[],
): Segment[] {
  const slope = bandwidth.bytesPerSecond / rateUnit({ bandwidth, ...roofline }).size;
  const [left, right] = layout.x.domain as [number, number];
  const ridge = names.at(-1)!.rate / slope;
  return [
    [pixelsOf(layout, left, left * slope), pixelsOf(layout, ridge, ridge * slope)],
    ...names.map(({ rate }): Segment => [
      pixelsOf(layout, rate / slope, rate),
      pixelsOf(layout, right, rate),
    ]),
  ];
}

/** The slope up to the highest ceiling, and each ceiling from the slope on. */
function roofMarks(
  { bandwidth, ...roofline }: RooflinePlot,
  { layout }: RooflineFrame,
  names: readonly CeilingName[],
  palette: Palette,
): Markish[] {
  const unit = rateUnit({ bandwidth, ...roofline });
  const slope = bandwidth.bytesPerSecond / unit.size;
  const [left, right] = layout.x.domain as [number, number];
  const highest = names.at(-1)!.rate;
  const foot = Math.max(left, layout.y.domain[0] / slope);
  const line = { stroke: palette.ink, strokeWidth: 2 };
  const written = { fill: palette.ink, stroke: palette.background, strokeWidth: 4 };
  return [
    observablePlot().line(
      [
        [foot, foot * slope],
        [highest / slope, highest],
      ],
      line,
    ),
    ...names.flatMap(({ text, rate, drop }) => [
      observablePlot().line(
        [
          [rate / slope, rate],
          [right, rate],
        ],
        { ...line, strokeDasharray: rate === highest ? undefined : '6 4' },
      ),
      observablePlot().text([text], { ...written, x: [right], y: [rate], textAnchor: 'end', dy: drop }),
    ]),
    observablePlot().text([bandwidthText(bandwidth)], {
      ...{ ...written, frameAnchor: 'top-left', textAnchor: 'start', lineAnchor: 'middle' },
      // Above the roof, where no work can be.
      dx: 6,
      dy: slopeNameTop(layout, slope, bandwidthText(bandwidth)) - layout.margin.top,
    }),
  ];
}

function slopeNameBox({ bandwidth, ...roofline }: RooflinePlot, layout: RooflineFrame['layout']): Box {
  const text = bandwidthText(bandwidth);
  const slope = bandwidth.bytesPerSecond / rateUnit({ bandwidth, ...roofline }).size;
  const top = slopeNameTop(layout, slope, text);
  const left = layout.margin.left + 6;
  return { left, right: left + textWidth(text), top: top - 8, bottom: top + 8 };
}

function bandwidthText({ label, bytesPerSecond }: RooflinePlot['bandwidth']): string {
  const isTera = bytesPerSecond >= 1e12;
  const rate = formatNumber(bytesPerSecond / (isTera ? 1e12 : 1e9), 3);
  return `${label}: ${rate} ${isTera ? 'TB/s' : 'GB/s'}`;
}

/** The lowest place at the left side, in pixels from the top, from which a name of the slope ends before it. */
function slopeNameTop(layout: RooflineFrame['layout'], slope: number, text: string): number {
  const { left, right } = { left: layout.margin.left + 6, right: layout.margin.left + 18 + textWidth(text) };
  const [start, end] = layout.x.domain as [number, number];
  const across = layout.width - layout.margin.left - layout.margin.right - 2 * X_INSET;
  const x = start * (end / start) ** ((right - left + 6) / across);
  const { top } = pixelsOf(layout, x, x * slope);
  return Math.max(layout.margin.top + 8, Math.min(top, layout.height - layout.margin.bottom - 12));
}

function dotMarks(roofline: RooflinePlot, { plot, dots }: RooflineFrame, palette: Palette): Markish[] {
  const names = plot.series.map(({ name }) => name);
  const total = dots.reduce((sum, { point }) => sum + point.durationMs, 0);
  return plot.series.map((_, series) => {
    const color = colorOf(names, series, palette);
    return observablePlot().dot(
      dots.filter((dot) => dot.series === series),
      {
        x: 'intensity',
        y: 'rate',
        r: 'radius',
        symbol: symbolOf(series),
        fill: color,
        fillOpacity: 0.55,
        stroke: color,
        strokeWidth: 1.25,
        title: (dot: Dot) => dotText(roofline, dot, dot.point.durationMs / total),
      },
    );
  });
}

function labelMarks(labels: readonly DotLabel[], palette: Palette): Markish[] {
  return labels.map(({ dot, text, side }) =>
    observablePlot().text([text], {
      x: [dot.intensity],
      y: [dot.rate],
      dx: (side === 'right' ? 1 : -1) * (dot.radius + 4),
      textAnchor: side === 'right' ? 'start' : 'end',
      fill: palette.ink,
      stroke: palette.background,
      strokeWidth: 3,
      fontSize: 11,
      className: 'dot-names',
    }),
  );
}

function dotText(roofline: RooflinePlot, dot: Dot, timeShare: number): string {
  const { point, intensity, rate, roofShare } = dot;
  const share = roofShareText(roofShare, roofline.spread);
  return [
    point.name,
    point.category,
    `${formatNumber(rate, 3)} ${rateUnit(roofline).name} at ${formatNumber(intensity, 3)} FLOP/byte`,
    share.includes('roof') ? share : `${share} of the roof`,
    `${measuredText(point.durationMs, { kind: 'duration' })}, ${measuredText(timeShare, { kind: 'percent' })} of the time drawn`,
    point.note,
  ]
    .filter(Boolean)
    .join('\n');
}
