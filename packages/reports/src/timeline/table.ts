import { checkTimelineShape } from '../check/check-model.ts';
import type { Row, Table, Timeline } from '../model.ts';
import { checkTimeline } from './check.ts';
import { joinSentences } from '../text/join-sentences.ts';

const MOST_ROWS = 40;

interface NamedTime {
  track: string;
  name: string;
  count: number;
  totalUs: number;
  longestUs: number;
}

/**
 * The names that took most time, each with its track.
 *
 * @throws ReportError for what `renderHtml` refuses as well.
 */
export function timelineTable(timeline: Timeline): Table {
  checkTimelineShape('timelineTable', timeline);
  checkTimeline(timeline);
  const names = namedTimes(timeline);
  const { id, title } = timeline;
  const cut =
    names.length > MOST_ROWS ? `The ${MOST_ROWS} of ${names.length} names that took most time.` : undefined;
  return {
    kind: 'table',
    id: `${id}-data`,
    title,
    caption: joinSentences([timeline.caption, cut]) || undefined,
    columns: [
      { key: 'track', label: 'Track', kind: 'text' },
      { key: 'name', label: 'Name', kind: 'text' },
      { key: 'count', label: 'Instances', kind: 'number' },
      { key: 'totalMs', label: 'Total', kind: 'duration', unitGroup: 'time' },
      { key: 'meanMs', label: 'Mean', kind: 'duration', unitGroup: 'time' },
      { key: 'longestMs', label: 'Longest', kind: 'duration', unitGroup: 'time' },
    ],
    rows: names.slice(0, MOST_ROWS).map(tableRow),
  };
}

function tableRow({ track, name, count, totalUs, longestUs }: NamedTime): Row {
  return {
    track,
    name,
    count,
    totalMs: totalUs / 1e3,
    meanMs: totalUs / 1e3 / count,
    longestMs: longestUs / 1e3,
  };
}

function namedTimes({ tracks }: Timeline): NamedTime[] {
  const times = tracks.flatMap(({ name: track, slices }) => {
    const named = new Map<string, NamedTime>();
    for (const { name, durationUs } of slices) {
      const time = named.get(name) ?? { track, name, count: 0, totalUs: 0, longestUs: 0 };
      time.count += 1;
      time.totalUs += durationUs;
      time.longestUs = Math.max(time.longestUs, durationUs);
      named.set(name, time);
    }
    return [...named.values()];
  });
  return times.sort((a, b) => b.totalUs - a.totalUs);
}
