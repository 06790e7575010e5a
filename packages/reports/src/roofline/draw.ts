import type { Markish } from '@observablehq/plot';
import { observablePlot } from '../plot/drawing-libraries.ts';
import type { RooflinePlot } from '../model.ts';
import { extent } from '../plot/domain.ts';
import { drawSvg } from '../plot/draw.ts';
import type { PlotSize } from '../plot/layout.ts';
import type { Palette } from '../plot/palette.ts';
import { colorOf, symbolOf } from '../plot/series.ts';
import { formatNumber } from '../table/format.ts';
import { measuredText } from '../table/number-text.ts';
import { roofShareText } from '../table/roof-share.ts';
import { shortSymbol } from '../text/short-symbol.ts';
import { shorten } from '../text/shorten.ts';
import { frameOf, labelDots, pixelsOf } from './frame.ts';
import type { Dot, DotLabel, RooflineFrame } from './frame.ts';
import { rateUnit } from './performance.ts';

/** Characters of a name next to its dot. */
const LONGEST_LABEL = 30;
/** Where on the slope its name may be, as fractions of the way to the first ridge. */
const SLOPE_PLACES = [0.3, 0.4, 0.5, 0.6, 0.7];

export function drawRoofline(roofline: RooflinePlot, palette: Palette, size: PlotSize): string {
  const frame = frameOf(roofline, size);
  const labels = labelDots(frame, (name) => shorten(shortSymbol(name), LONGEST_LABEL));
  return drawSvg(frame.plot, frame.layout, palette, [
    ...roofMarks(roofline, frame, labels, palette),
    ...dotMarks(roofline, frame, palette),
    ...labelMarks(labels, palette),
  ]);
}

/** The slope up to the highest ceiling, and each ceiling from the slope on. */
function roofMarks(
  roofline: RooflinePlot,
  frame: RooflineFrame,
  labels: readonly DotLabel[],
  palette: Palette,
): Markish[] {
  const { layout } = frame;
  const unit = rateUnit(roofline);
  const { bandwidth, ceilings } = roofline;
  const slope = bandwidth.bytesPerSecond / unit.size;
  const peaks = ceilings
    .map(({ label, flopsPerSecond }) => ({ label, rate: flopsPerSecond / unit.size }))
    .sort((a, b) => a.rate - b.rate);
  const [left, right] = layout.x.domain as [number, number];
  const highest = peaks.at(-1)!.rate;
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
    ...peaks.flatMap(({ label, rate }) => [
      observablePlot().line(
        [
          [rate / slope, rate],
          [right, rate],
        ],
        { ...line, strokeDasharray: rate === highest ? undefined : '6 4' },
      ),
      observablePlot().text([`${label}: ${formatNumber(rate, 3)} ${unit.name}`], {
        ...written,
        x: [right],
        y: [rate],
        textAnchor: 'end',
        dy: -9,
      }),
    ]),
    slopeLabel(bandwidth, { foot, slope, ridge: peaks[0]!.rate / slope }, frame, labels, written),
  ];
}

/** Along the slope and above it, where dots and their names are farthest. */
function slopeLabel(
  { label, bytesPerSecond }: RooflinePlot['bandwidth'],
  { foot, slope, ridge }: { foot: number; slope: number; ridge: number },
  { layout, dots }: RooflineFrame,
  labels: readonly DotLabel[],
  written: object,
): Markish {
  const pixels = (x: number) => pixelsOf(layout, x, x * slope);
  const [from, to] = [pixels(foot), pixels(ridge)];
  const rotate = (Math.atan2(to.top - from.top, to.left - from.left) * 180) / Math.PI;
  const room = (x: number) => {
    const { left, top } = pixels(x);
    const toDots = dots.map((dot) => Math.hypot(dot.left - left, dot.top - (top - 12)) - dot.radius);
    const toNames = labels.map(({ box }) => {
      const across = Math.max(box.left - left, 0, left - box.right);
      return Math.hypot(across, (box.top + box.bottom) / 2 - (top - 12));
    });
    return extent([...toDots, ...toNames])[0];
  };
  const places = SLOPE_PLACES.map((part) => foot * (ridge / foot) ** part);
  const at = places.reduce((best, place) => (room(place) > room(best) ? place : best));
  const isTera = bytesPerSecond >= 1e12;
  const rate = formatNumber(bytesPerSecond / (isTera ? 1e12 : 1e9), 3);
  return observablePlot().text([`${label}: ${rate} ${isTera ? 'TB/s' : 'GB/s'}`], {
    ...written,
    x: [at],
    y: [at * slope],
    rotate,
    dy: -12,
  });
}

function dotMarks(roofline: RooflinePlot, { plot, dots }: RooflineFrame, palette: Palette): Markish[] {
  const total = dots.reduce((sum, { point }) => sum + point.durationMs, 0);
  return plot.series.map((_, series) => {
    const color = colorOf(series, palette);
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
