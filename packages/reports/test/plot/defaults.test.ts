import { expect, it } from 'vitest';
import { plotLines, plotTable, renderSvg } from '../../src/index.ts';
import type { Plot } from '../../src/index.ts';

const bare = (x: number | string): Plot => ({
  ...{ kind: 'plot', id: 'p', title: 'P' },
  ...{ x: { label: 'x' }, y: { label: 'y' } },
  series: [{ name: 's', points: [{ x, y: 1 }, { x: typeof x === 'number' ? x + 1 : `${x}b`, y: 3 }] }], // prettier-ignore
});

it('a plot is of lines on linear axes, and along categories where places are text', () => {
  const full = (x: number | string, scale: 'linear' | 'category'): Plot => ({
    ...bare(x),
    x: { label: 'x', scale },
    y: { label: 'y', scale: 'linear' },
    marks: 'line',
  });
  expect(renderSvg(bare(1))).toBe(renderSvg(full(1, 'linear')));
  expect(renderSvg(bare('a'))).toBe(renderSvg(full('a', 'category')));
});

it('plotLines draws lists by their places, with a gap for what diverged', () => {
  const plot = plotLines({ loss: [3, NaN, 1], accuracy: [0, 1] }, { y: 'Loss' });
  expect(plotTable(plot).rows).toEqual([
    { x: 0, series0: 3, series1: 0 },
    { x: 1, series0: null, series1: 1 },
    { x: 2, series0: 1 },
  ]);
  const svg = renderSvg(plot);
  for (const text of ['>Step<', '>Loss<', '>loss<', '>accuracy<', 'loss, accuracy'])
    expect(svg).toContain(text);
});
