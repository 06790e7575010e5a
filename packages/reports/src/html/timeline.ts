import type { Slice, Timeline } from '../model.ts';
import { checkTimeline } from '../timeline/check.ts';
import { rowsOf } from '../timeline/rows.ts';
import { timeSpan } from '../timeline/span.ts';
import { timelineTable } from '../timeline/table.ts';
import { escapeXml } from '../text/xml.ts';
import { chartHtml, Names, roundTime } from './chart.ts';
import { colorGroups } from '../plot/color-groups.ts';
import type { ColorGroups } from '../plot/color-groups.ts';

/** What `templates/timeline.js` draws: columns, so that ten thousand slices stay small. Times in microseconds. */
export interface TimelineData {
  durationUs: number;
  names: string[];
  tracks: { name: string; rows: RowData[] }[];
  counters: { name: string; unit: string; times: number[]; values: number[] }[];
}

interface RowData {
  starts: number[];
  durations: number[];
  /** Indices of `names`. */
  names: number[];
  colors: number[];
}

/** A timeline as a zoomable chart, with the names that took most time as a table below. */
export function timelineHtml(timeline: Timeline): string {
  const slices = timeline.tracks.flatMap((track) => track.slices);
  const groups = colorGroups(slices.map((slice) => ({ ...slice, weight: slice.durationUs })));
  const label = escapeXml(`Find in ${timeline.title}`);
  return chartHtml({
    kind: 'timeline',
    block: timeline,
    tool: `<input type="search" placeholder="Find a name" aria-label="${label}">`,
    groups,
    data: timelineData(timeline, groups),
    table: timelineTable(timeline),
  });
}

export function timelineData(timeline: Timeline, groups: ColorGroups): TimelineData {
  checkTimeline(timeline);
  const { tracks, counters = [] } = timeline;
  const [start, end] = timeSpan(timeline);
  const names = new Names();
  const row = (slices: Slice[]): RowData => ({
    starts: slices.map(({ startUs }) => roundTime(startUs - start)),
    durations: slices.map(({ durationUs }) => roundTime(durationUs)),
    names: slices.map(({ name }) => names.indexOf(name)),
    colors: slices.map((slice) => groups.colorOf(slice)),
  });
  return {
    durationUs: roundTime(end - start),
    tracks: tracks.map((track) => ({ name: track.name, rows: rowsOf(track).map(row) })),
    counters: counters.map(({ name, unit, points }) => ({
      name,
      unit,
      times: points.map(([timeUs]) => roundTime(timeUs - start)),
      values: points.map(([, value]) => value),
    })),
    names: names.list,
  };
}
