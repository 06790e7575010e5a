import { describe, expect, it } from 'vitest';
import { renderSvg, type Plot, type Series } from '../../src/index.ts';
import { withDefaults } from '../../src/plot/defaults.ts';
import { layOut } from '../../src/plot/layout.ts';
import { PALETTES } from '../../src/plot/palette.ts';

const line = (name: string, ys: readonly (number | null)[]): Series => ({
  name,
  points: ys.map((y, index) => ({ x: 2 ** index, y, ...(y === null && { note: 'OOM' }) })),
});
const plotOf = (series: Series[], more: Partial<Plot> = {}): Plot => ({
  ...{ kind: 'plot', id: 'p', title: 'Lines', series },
  ...{ x: { label: 'Size', scale: 'log' }, y: { label: 'Time', scale: 'linear' } },
  ...more,
});
const layoutOf = (plot: Plot, width = 860) =>
  layOut(withDefaults(plot), { width, height: 400, standalone: false });
const rising = line('rising', [1, 2, 4, 8]);
const level = line('level', [1, 1, 1, 1]);

describe('names at the ends of lines', () => {
  it('stand to the right of the plot, at the heights of their ends, in the colours of their lines', () => {
    const plot = plotOf([rising, level], { references: [{ label: 'the roof', y: 10 }] });
    const { ends, legend, margin, width, height } = layoutOf(plot);
    expect(legend).toEqual([]);
    expect(ends.map(({ label }) => label)).toEqual(['the roof', 'rising', 'level']);
    for (const { left, label } of ends) {
      expect(left).toBeGreaterThan(width - margin.right);
      expect(left + 6 * label.length).toBeLessThan(width);
    }
    const [top, bottom] = [margin.top, height - margin.bottom];
    expect(ends[1]!.top).toBeCloseTo(top + (bottom - top) * 0.2);
    const svg = renderSvg(plot);
    expect(svg).toContain(`fill="${PALETTES.light.series[0]}"`);
    expect(svg.match(/>rising</g)).toHaveLength(1);
  });

  it('part where ends meet, around their middle, and never leave the plot', () => {
    const near = [8, 8.01, 8.02].map((last, index) => line(`line ${index}`, [index, 2, 4, last]));
    const { ends, margin } = layoutOf(plotOf(near));
    const tops = ends.map(({ top }) => top);
    expect(ends.map(({ label }) => label)).toEqual(['line 2', 'line 1', 'line 0']);
    for (const [index, top] of tops.slice(1).entries()) expect(top - tops[index]!).toBeGreaterThanOrEqual(15);
    expect(tops[0]).toBeGreaterThanOrEqual(margin.top);
  });

  it('are in a legend where they would lie far from their ends', () => {
    const many = Array.from({ length: 8 }, (_, index) => line(`line ${index}`, [index, 2, 4, 8]));
    const { ends, legend } = layoutOf(plotOf(many));
    expect(ends).toEqual([]);
    expect(legend).toHaveLength(8);
  });

  it('are in a legend where they would take more than a third of the width', () => {
    const long = line('a name that says all of what was measured here', [1, 2, 4, 8]);
    expect(layoutOf(plotOf([long, level])).ends).toEqual([]);
    expect(layoutOf(plotOf([rising, level]), 400).ends).toHaveLength(2);
    expect(layoutOf(plotOf([rising, level]), 120).legend).toHaveLength(2);
  });

  it('stand within the plot where a line ends early and nothing else is there', () => {
    const early = line('early', [6, 7, null, null]);
    const { ends, margin, width } = layoutOf(
      plotOf([rising, { ...early, points: early.points.slice(0, 2) }]),
    );
    const name = ends.find(({ label }) => label === 'early')!;
    expect(name.left).toBeLessThan(width - margin.right);
    // Room is kept for names that stand beside the plot alone.
    expect(margin.right).toBeLessThan(60);
  });

  it('are in a legend where another line is in the way of all places around an end', () => {
    const early = line('an early end', [null, 4, null, null]);
    const across = [3.9, 4.1].map((y, index) => line(`across ${index}`, [y, y, y, y]));
    const base = line('base', [0, 0, 0, 0]);
    expect(layoutOf(plotOf([early, base])).ends).toHaveLength(2);
    expect(layoutOf(plotOf([early, base, ...across])).ends).toEqual([]);
  });

  it.each(['bar', 'dot'] as const)('are in a legend where marks are %ss', (marks) => {
    expect(layoutOf(plotOf([rising, level], { marks })).legend).toHaveLength(2);
  });

  it('of a line without any value are in a legend, which says why', () => {
    const { legend } = layoutOf(plotOf([rising, line('none', [null, null, null, null])]));
    expect(legend.map(({ label }) => label)).toEqual(['rising', 'none (OOM at 1, 2, 4, 8)']);
  });
});
