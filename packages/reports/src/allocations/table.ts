import { checkAllocationsShape } from '../check/check-model.ts';
import { formatBytes } from '../table/format.ts';
import type { AllocationPlot, Row, Table } from '../model.ts';
import { checkAllocations } from './check.ts';
import { joinSentences } from '../text/join-sentences.ts';
import { findPeak } from './peak.ts';

const MOST_ROWS = 40;

/**
 * What was live at the peak, by label, the largest first.
 *
 * @throws ReportError for what `renderHtml` refuses as well.
 */
export function allocationTable(plot: AllocationPlot): Table {
  checkAllocationsShape('allocationTable', plot);
  checkAllocations(plot);
  const peak = findPeak(plot.allocations);
  const rows = new Map<string, Row & { count: number; bytes: number }>();
  for (const { label, category, bytes } of peak.live) {
    const key = JSON.stringify([label, category]);
    const row = rows.get(key) ?? { label, category, count: 0, bytes: 0 };
    row.count += 1;
    row.bytes += bytes;
    rows.set(key, row);
  }
  const sorted = [...rows.values()].sort((a, b) => b.bytes - a.bytes);
  const cut = sorted.length > MOST_ROWS ? `The ${MOST_ROWS} largest of ${sorted.length} labels.` : '';
  return {
    kind: 'table',
    id: `${plot.id}-data`,
    title: plot.title,
    caption: joinSentences([plot.caption, `Live at the peak of ${formatBytes(peak.bytes)}.`, cut]),
    columns: [
      { key: 'label', label: 'Label', kind: 'text' },
      { key: 'category', label: 'Category', kind: 'text' },
      { key: 'count', label: 'Allocations', kind: 'number' },
      { key: 'bytes', label: 'Size', kind: 'bytes' },
      { key: 'share', label: 'Of the peak', kind: 'percent' },
    ],
    rows: sorted.slice(0, MOST_ROWS).map((row) => ({ ...row, share: row.bytes / peak.bytes })),
  };
}
