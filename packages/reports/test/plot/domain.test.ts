import { describe, expect, it } from 'vitest';
import type { Plot, Point } from '../../src/index.ts';
import { resolveY } from '../../src/plot/domain.ts';
import { withDefaults } from '../../src/plot/defaults.ts';

/** The vertical axis of a plot of these points, a series each list. */
function axisOf(series: Point[][], more: Partial<Plot> = {}) {
  const plot: Plot = {
    ...{ kind: 'plot', id: 'p', title: 'P', x: { label: 'x' }, y: { label: 'y' } },
    series: series.map((points, index) => ({ name: `s${index}`, points })),
    ...more,
  };
  return resolveY(withDefaults(plot), 5).domain;
}
const points = (...ys: number[]): Point[] => ys.map((y, x) => ({ x, y }));

describe('the vertical axis', () => {
  it('begins at 0 where the least is below half of the most, and near the least where not', () => {
    expect(axisOf([points(49, 100)])).toEqual([0, 100]);
    expect(axisOf([points(50, 100)])[0]).toBe(50);
    expect(axisOf([points(90, 100)])[0]).toBeGreaterThanOrEqual(88);
    expect(axisOf([points(90, 100)], { marks: 'bar' })[0]).toBe(0);
    expect(axisOf([points(-3, -1)])[1]).toBeGreaterThanOrEqual(0);
  });

  it('is as high as stacked bars reach', () => {
    const stacked = { marks: 'bar', stacked: true } as const;
    expect(axisOf([points(3, 1), points(4, 1)], stacked)[1]).toBeGreaterThanOrEqual(7);
    expect(axisOf([points(3, 1), points(4, 1)], { marks: 'bar' })[1]).toBeLessThan(7);
  });
});
