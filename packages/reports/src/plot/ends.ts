import type { Point, Series } from '../model.ts';
import type { DrawnPlot } from './defaults.ts';
import type { NumericAxis, ResolvedAxis } from './domain.ts';
import { namedItems, type NamedItem } from './legend.ts';
import { textWidth } from './text-width.ts';

/** From the end of a line to its name. */
const GAP = 8;
/** From one name to the next below it. */
const LINE = 15;
/** Names farther from their ends would be taken for others'. */
const MOST_MOVED = 22;
/** The part of an image that names may take from the plot. */
const MOST_WIDTH = 0.34;
/** What a name keeps from lines and their marks. */
const CLEARANCE = 5;

/** The name of a line, or of a level to compare with, at its right end: pixels of the image. */
export interface EndName extends NamedItem {
  readonly left: number;
  /** The middle of its line. */
  readonly top: number;
}

/** Axes, and where an image has its plot: pixels. */
export interface Frame {
  readonly x: NumericAxis;
  readonly y: NumericAxis;
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
  /** Between the ends of the x axis and its first and last value. */
  readonly inset: number;
}

interface Place {
  readonly left: number;
  readonly top: number;
}

interface Sized {
  readonly width: number;
}

interface End extends NamedItem, Sized {
  readonly at: Place;
}

/** Pixels that names take to the right of a plot of lines; null where they would take too many, or there is nothing to name. */
export function endNamesWidth(plot: DrawnPlot, x: ResolvedAxis, width: number): number | null {
  const isOfLines = plot.marks === 'line' || plot.marks === 'area';
  const items = namedItems(plot);
  if (!isOfLines || x.scale === 'category' || items.length === 0) return null;
  const beside = items.filter(
    ({ series }) => series === null || endOf(plot.series[series]!)?.x === x.domain[1],
  );
  const taken = Math.max(0, ...beside.map(({ label }) => GAP + nameWidth(label)));
  return taken > MOST_WIDTH * width ? null : taken;
}

/** A name at the end of each line; null where one would have to lie far from it, or on something else: a legend then. */
export function nameEnds(plot: DrawnPlot, frame: Frame): EndName[] | null {
  const lines = plot.series.map(({ points }) =>
    points.flatMap(({ x, y }) => (y === null ? [] : [placeOf(frame, Number(x), y)])),
  );
  const ends = namedItems(plot).map((item): End | null => {
    const at =
      item.series === null
        ? { left: frame.right, top: placeOf(frame, frame.x.domain[1], item.y!).top }
        : lines[item.series]!.at(-1);
    return at ? { ...item, at, width: nameWidth(item.label) } : null;
  });
  const known = ends.filter((end) => end !== null);
  if (known.length < ends.length) return null;
  const isLast = ({ at }: End) => at.left >= frame.right - frame.inset - 1;
  const names = spread(known.filter(isLast), frame);
  if (names === null) return null;
  for (const end of known.filter((each) => !isLast(each))) {
    const name = freePlace(end, lines, names, frame);
    if (name === null) return null;
    names.push(name);
  }
  return names;
}

/** With room for fonts that are wider than most. */
function nameWidth(label: string): number {
  return 1.1 * textWidth(label);
}

function endOf({ points }: Series): Point | undefined {
  return points.findLast(({ y }) => y !== null);
}

/** The names to the right of the plot, one below another as their ends are, and as near to these as they can be. */
function spread(ends: readonly End[], { right, top, bottom }: Frame): (EndName & Sized)[] | null {
  const ordered = ends.toSorted((a, b) => a.at.top - b.at.top);
  const groups: { tops: number[]; first: number }[] = [];
  for (const { at } of ordered) {
    let group = { tops: [at.top], first: at.top };
    // Names that would overlap stand around their middle.
    while (groups.length > 0 && groups.at(-1)!.first + groups.at(-1)!.tops.length * LINE > group.first) {
      const tops = [...groups.pop()!.tops, ...group.tops];
      const middle = tops.reduce((sum, each) => sum + each, 0) / tops.length;
      const span = (tops.length - 1) * LINE;
      group = { tops, first: Math.min(Math.max(middle - span / 2, top), bottom - 4 - span) };
    }
    groups.push(group);
  }
  const places = groups.flatMap(({ tops, first }) => tops.map((_, index) => first + index * LINE));
  const isFar = ordered.some(({ at }, index) => Math.abs(at.top - places[index]!) > MOST_MOVED);
  if (isFar) return null;
  return ordered.map(({ series, label, width }, index) => ({
    ...{ series, label, width, left: right + GAP, top: places[index]! },
  }));
}

/** Next to the end of a line that ends within the plot, or above or below that; null where all of it is taken. */
function freePlace(
  { series, label, at, width }: End,
  lines: readonly (readonly Place[])[],
  others: readonly (EndName & Sized)[],
  frame: Frame,
): (EndName & Sized) | null {
  const places = [
    { left: at.left + GAP, top: at.top },
    { left: at.left - width / 2, top: at.top - LINE },
    { left: at.left - width / 2, top: at.top + LINE },
  ];
  const isFree = ({ left, top }: Place) =>
    left + width < frame.right &&
    left > frame.left &&
    top > frame.top + LINE / 2 &&
    top < frame.bottom - 2 * LINE &&
    others.every((other) => Math.abs(other.top - top) >= LINE || areApart(other, { left, width })) &&
    lines.every((line, index) => index === series || !crosses(line, { left, top, width }));
  const place = places.find(isFree);
  return place ? { series, label, width, ...place } : null;
}

function areApart(
  a: Pick<Place & Sized, 'left' | 'width'>,
  b: Pick<Place & Sized, 'left' | 'width'>,
): boolean {
  return a.left > b.left + b.width || b.left > a.left + a.width;
}

/** Whether a line comes near a name. */
function crosses(line: readonly Place[], name: Place & { readonly width: number }): boolean {
  const [left, right] = [name.left - CLEARANCE, name.left + name.width + CLEARANCE];
  const reach = LINE / 2 + CLEARANCE;
  return line.some((from, index) => {
    const to = line[index + 1] ?? from;
    if (to.left < left || from.left > right) return false;
    const heightAt = (x: number) =>
      to.left === from.left
        ? to.top
        : from.top + ((to.top - from.top) * (x - from.left)) / (to.left - from.left);
    const [a, b] = [heightAt(Math.max(left, from.left)), heightAt(Math.min(right, to.left))];
    return Math.min(a, b) < name.top + reach && Math.max(a, b) > name.top - reach;
  });
}

function placeOf(frame: Frame, x: number, y: number): Place {
  const { left, right, top, bottom, inset } = frame;
  return {
    left: left + inset + shareOf(frame.x, x) * (right - left - 2 * inset),
    top: bottom - shareOf(frame.y, y) * (bottom - top),
  };
}

/** How far along its axis a value is, from 0 to 1. */
function shareOf({ scale, domain: [low, high] }: NumericAxis, value: number): number {
  const place = scale === 'log' ? Math.log : Number;
  return (place(value) - place(low)) / (place(high) - place(low));
}
