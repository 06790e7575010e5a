import { checkRoofline } from '../check/check-model.ts';
import type { Column, RooflinePlot, Table } from '../model.ts';
import { performances, rateUnit } from './performance.ts';

/**
 * A roofline's points as a table, the one that took most time first.
 *
 * @throws ReportError for what is not a roofline, and for a point under a ceiling that does not exist.
 */
export function rooflineTable(roofline: RooflinePlot): Table {
  checkRoofline('rooflineTable', roofline);
  const { id, title, caption, spread } = roofline;
  const unit = rateUnit(roofline);
  const hasCategories = roofline.points.some(({ category }) => category !== undefined);
  const columns: Column[] = [
    { key: 'name', label: 'Name', kind: 'text' },
    ...(hasCategories ? [{ key: 'category', label: 'Of', kind: 'text' } as const] : []),
    { key: 'durationMs', label: 'Time', unit: 'ms', kind: 'duration' },
    { key: 'intensity', label: 'Intensity', unit: 'FLOP/byte', kind: 'number', digits: 3 },
    { key: 'rate', label: 'Performance', unit: unit.name, kind: 'number', digits: 3 },
    { key: 'roof', label: 'Roof', unit: unit.name, kind: 'number', digits: 3 },
    { key: 'roofShare', label: 'Of the roof', kind: 'percent', emphasis: 'roof', ...(spread && { spread }) },
  ];
  const rows = performances(roofline)
    .toSorted((a, b) => b.point.durationMs - a.point.durationMs)
    .map(({ point, intensity, flopsPerSecond, roofFlopsPerSecond, roofShare }) => ({
      name: point.name,
      category: point.category,
      durationMs: point.durationMs,
      intensity,
      rate: flopsPerSecond / unit.size,
      roof: roofFlopsPerSecond / unit.size,
      roofShare,
    }));
  return { kind: 'table', id: `${id}-data`, title, caption, columns, rows };
}
