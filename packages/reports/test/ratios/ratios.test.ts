import { DOMParser } from 'linkedom';
import { describe, expect, it } from 'vitest';
import { ratioTable, renderHtml, renderMarkdown, renderPng, renderSvg } from '../../src/index.ts';
import type { RatioPlot, RatioRow } from '../../src/index.ts';
import { PALETTES } from '../../src/plot/palette.ts';
import { layOutRatios } from '../../src/ratios/layout.ts';
import { ratioScale } from '../../src/ratios/scale.ts';
import { sampleReport } from '../fixtures.ts';

const row = (names: string[], ours: number | null, theirs: number | null, more: Partial<RatioRow> = {}) => ({
  ...{ names, ours, theirs },
  ...more,
});

function steps(changes: Partial<RatioPlot> = {}): RatioPlot {
  return {
    ...{ kind: 'ratios', id: 'step-ratios', title: 'Steps <over> PyTorch', caption: 'bfloat16' },
    ...{ ours: 'Roofline', theirs: 'PyTorch', value: 'duration', heads: ['Model', 'Context'] },
    rows: [
      row(['small', '256'], 3.5, 7, { low: 0.45, high: 0.55 }),
      row(['2.7b', '512'], 111, 100),
      row(['8b', '512'], null, 300, { note: 'out of memory' }),
    ],
    ...changes,
  };
}

function drawn(plot: RatioPlot, width: number) {
  const document = new DOMParser().parseFromString(renderSvg(plot, { width }), 'image/svg+xml');
  const all = (selector: string) => [...document.querySelectorAll(selector)];
  const numbers = (name: string, selector: string) =>
    all(selector).map((each) => Number(each.getAttribute(name)));
  return { all, numbers, texts: all('text').map(({ textContent }) => textContent) };
}

describe.each([832, 358])('ratios of %s pixels', (width) => {
  it('give names, values in one unit and ratios, and say why there is none', () => {
    const { texts } = drawn(steps(), width);
    for (const text of [
      'small',
      '256',
      'Roofline (ms)',
      '3.50',
      '7.00',
      '0.50×',
      '1.11×',
      '111',
      'PyTorch = 1',
    ])
      expect(texts).toContain(text);
    expect(texts).toContain('out of memory');
    expect(texts.filter((text) => text === '–')).toHaveLength(1);
  });

  it('put dots in proportion on either side of the line', () => {
    const { numbers } = drawn(steps(), width);
    const { axis } = layOutRatios(steps(), { width, height: 0, standalone: true });
    const level = axis.left + axis.scale.at(1);
    const [small, large] = numbers('cx', 'circle');
    expect((level - small!) / (large! - level)).toBeCloseTo(0.5 / 0.11, 0);
  });

  it('keep all texts inside, and rows apart', () => {
    const { all, numbers } = drawn(steps(), width);
    const height = numbers('height', 'svg')[0]!;
    for (const y of numbers('y', 'text')) expect(y).toBeLessThan(height);
    for (const text of all('text')) {
      const x = Number(text.getAttribute('x'));
      expect(x).toBeGreaterThanOrEqual(0);
      expect(x).toBeLessThanOrEqual(width);
    }
    const dots = numbers('cy', 'circle');
    expect(dots[1]! - dots[0]!).toBeGreaterThanOrEqual(30);
  });
});

it('names far too long leave the axis its room', () => {
  const long = steps({ rows: [row(['a'.repeat(300), 'b'.repeat(300)], 1, 2)] });
  const { axis } = layOutRatios(long, { width: 832, height: 0, standalone: true });
  expect(axis.right - axis.left).toBeGreaterThanOrEqual(240);
});

it('an axis of ratios a thousand times apart is logarithmic', () => {
  const wide = steps({ rows: [row(['a', 'b'], 1, 1000), row(['c', 'd'], 1, 10)] });
  const { axis } = layOutRatios(wide, { width: 832, height: 0, standalone: true });
  const [thousandth, tenth, one] = [0.001, 0.1, 1].map(axis.scale.at) as [number, number, number];
  expect((one - thousandth) / (one - tenth)).toBeCloseTo(3, 6);
});

it('all level is drawn, too', () => {
  expect(drawn(steps({ rows: [row(['a', 'b'], 2, 2)] }), 832).texts).toContain('1.00×');
});

it('an interval given the wrong way round is drawn the right way', () => {
  const { numbers } = drawn(steps({ rows: [row(['a', 'b'], 1, 2, { low: 0.6, high: 0.4 })] }), 832);
  for (const width of numbers('width', 'rect[rx]')) expect(width).toBeGreaterThan(0);
});

it('one colour names one party', () => {
  const { numbers: _, all } = drawn(steps({ theirs: 'JAX 0.11' }), 832);
  const head = all('text').find(({ textContent }) => textContent === 'JAX 0.11 = 1')!;
  expect(head.getAttribute('fill')).toBe('#8f3f80');
});

it('a reader who does not see it hears every ratio', () => {
  const [svg] = drawn(steps(), 832).all('svg');
  expect(svg!.getAttribute('aria-label')).toBe(
    'Steps &lt;over&gt; PyTorch: small 256 0.50×, 2.7b 512 1.11×, 8b 512 out of memory',
  );
});

it('cannot be drawn where nothing was measured on both sides', () => {
  const rows = [row(['a', 'b'], null, 2)];
  expect(() => renderSvg(steps({ rows }))).toThrow("ratios 'step-ratios': no case is measured on both sides");
  expect(ratioTable(steps({ rows })).rows).toHaveLength(1);
});

it('has as many names in a row as heads', () => {
  expect(() => renderSvg(steps({ heads: ['Model'] }))).toThrow(
    'renderSvg: ratios.rows[0].names must be a list of 1, as many as heads, not a list',
  );
});

it('is a chart of reports, with its numbers below, and an image or a table in Markdown', async () => {
  const html = renderHtml(sampleReport({ chart: steps() }));
  expect(html.match(/<svg aria-label="Steps &lt;over&gt; PyTorch/g)).toHaveLength(2);
  expect(html).toContain('0.45× to 0.55×');
  const report = sampleReport({ chart: steps() });
  expect(renderMarkdown(report, { plotPath: ({ id }) => `${id}.svg` })).toContain('](step-ratios.svg)');
  expect(renderMarkdown(report)).toContain('| small | 256 ');
  expect(String.fromCharCode(...(await renderPng(steps())).subarray(1, 4))).toBe('PNG');
});

it('has a colour for a peer alone: what else is compared with has that of text', () => {
  const [, torch, , jax] = PALETTES.light.series;
  const levelOf = (theirs: string) => {
    const svg = renderSvg(steps({ theirs }));
    return new RegExp(`fill="([^"]+)"[^>]*>${theirs} = 1<`).exec(svg)![1];
  };
  expect(['PyTorch cuDNN', 'Strongest peer', 'JAX', 'float32'].map(levelOf)).toEqual([
    ...[torch, torch, jax],
    PALETTES.light.ink,
  ]);
});

it('compares numbers of anything', () => {
  const plot = steps({ value: 'number', rows: [row(['small', '256'], 25, 100)] });
  expect(renderMarkdown({ ...sampleReport(), chart: plot })).toContain('| small | 256     |');
  expect(ratioTable(plot).columns[2]).toMatchObject({ kind: 'number', label: 'Roofline' });
});

it.each([358, 832])(
  'names its level from the left end on where half of that has no room, %i pixels wide',
  (width) => {
    const plot = steps({ theirs: 'after 5 warm-up steps', rows: [row(['small', '256'], 900, 100)] });
    const { axis, columns, padding } = layOutRatios(plot, { width, height: 0, standalone: true });
    const isAbove = axis.left <= columns[0]!.x;
    const level = /<text x="([\d.]+)" y="[\d.]+" fill="[^"]+" font-weight="600">after 5 warm-up steps = 1</;
    expect(Number(level.exec(renderSvg(plot, { width }))![1])).toBeCloseTo(isAbove ? padding : axis.left, 1);
  },
);

it('an axis has room for the ends of intervals, and for the line at 1 wherever the ratios are', () => {
  const at = (ratios: RatioRow[], ...asked: number[]) => {
    const scale = ratioScale(steps({ rows: ratios }), 400, 50);
    return asked.map((ratio) => Math.round(scale.at(ratio)));
  };
  expect(at([row(['a', 'b'], 3, 2, { low: 0.5, high: 2.5 })], 0.5, 2.5)).toEqual([50, 350]);
  expect(at([row(['a', 'b'], 3, 1), row(['a', 'c'], 2, 1)], 1, 3)).toEqual([50, 350]);
  expect(at([row(['a', 'b'], 1, 2), row(['a', 'c'], 1, 4)], 0.25, 1)).toEqual([50, 350]);
  expect(at([row(['a', 'b'], 1, 1)], 1)).toEqual([50]);
});
