import type { Table } from '@roofline/reports';
import { column } from '../../../report/standard-columns.ts';
import type { KernelSpan, RangeOpening } from '../kernel-spans.ts';
import { profileTables, type Profiles } from './profile-table.ts';
import { rangeSummary } from './summaries.ts';

const isLayer = ({ name }: RangeOpening) => /^layers\.\d+$/.test(name);

/** Each level, and which of the ranges around a kernel, outermost first, is the one of that level. */
const levels: readonly { level: string; rangeOf: (ranges: readonly RangeOpening[]) => number }[] = [
  { level: 'phases', rangeOf: () => 0 },
  { level: 'layers', rangeOf: (ranges) => ranges.findIndex(isLayer) },
  {
    level: 'parts of a layer',
    rangeOf: (ranges) => {
      const layer = ranges.findIndex(isLayer);
      return layer < 0 ? -1 : layer + 1;
    },
  },
];

/** Adds up the instances of `rangeSummary` over the ranges of each level that occurs. */
export function levelSums(spans: readonly KernelSpan[]) {
  const rows = rangeSummary(spans, { pid: 0, tid: 0 });
  return levels.flatMap(({ level, rangeOf }) => {
    const names = new Set(spans.flatMap(({ ranges }) => ranges[rangeOf(ranges)]?.name ?? []));
    if (names.size === 0) return [];
    const inside = rows
      .filter((row) => names.has(row.range))
      .reduce((sum, { instances }) => sum + instances, 0);
    const outside = spans.filter(({ ranges }) => !ranges.some(({ name }) => names.has(name))).length;
    const total = spans.length;
    // Whether inside and outside make the total: no kernel is lost, none counts twice.
    return [{ level, ranges: names.size, inside, outside, total, addsUp: inside + outside === total }];
  });
}

export function rangeLevelTables(profiles: Profiles): Table[] {
  return profileTables<ReturnType<typeof levelSums>[number]>(
    {
      ...{ id: 'instances-by-level', title: 'Instances by range add up' },
      caption:
        'Kernel instances of all profiled steps, whatever the selection: over the ranges of each level, as the table ' +
        'by range counts them, and outside of them.',
      columns: [
        column.text('level', 'Level', { emphasis: 'strong' }),
        column.number('ranges', 'Ranges'),
        column.number('inside', 'Instances inside'),
        column.number('outside', 'Outside'),
        column.number('total', 'All kernels'),
        column.text('addsUp', 'Adds up', ({ addsUp }) => (addsUp ? 'yes' : 'no')),
      ],
    },
    profiles,
    ({ spans }) => levelSums(spans),
  );
}
