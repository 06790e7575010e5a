import { DOMParser } from 'linkedom';
import { describe, expect, it } from 'vitest';
import { renderSvg } from '../../src/index.ts';
import { withDefaults } from '../../src/plot/defaults.ts';
import { layOut } from '../../src/plot/layout.ts';
import type { Plot, SvgOptions } from '../../src/index.ts';
import { throughput } from '../fixtures.ts';

interface Drawing {
  source: string;
  texts: string[];
  count: (selector: string) => number;
  /** `x`, `y`, `height` of each bar. */
  bars: { x: number; y: number; height: number }[];
}

function draw(plot: Plot, options?: SvgOptions): Drawing {
  const source = renderSvg(plot, options);
  const document = new DOMParser().parseFromString(source, 'image/svg+xml');
  const all = (selector: string) => [...document.querySelectorAll(selector)];
  return {
    source,
    texts: all('text').map((text) => text.textContent),
    count: (selector) => all(selector).length,
    bars: all('rect')
      .filter((rect) => rect.querySelector('title'))
      .map((rect) => {
        const [x, y, height] = ['x', 'y', 'height'].map((name) => Number(rect.getAttribute(name)));
        return { x: x!, y: y!, height: height! };
      }),
  };
}

describe('renderSvg', () => {
  it('has a title, axes with units, ticks, a legend and references', () => {
    const { texts } = draw(throughput());
    expect(texts).toEqual(
      expect.arrayContaining(['Throughput <by> context', 'Context (tokens)', 'Rate (TFLOP/s)']),
    );
    expect(texts).toEqual(expect.arrayContaining(['1024', '2048', '4096', '8192', '0', '200', '800']));
    expect(texts).toEqual(expect.arrayContaining(['ours', 'theirs (OOM at 8,192)', 'ceiling']));
  });

  it('draws an error bar with two ends for each point that has one', () => {
    const { count } = draw(throughput());
    expect(count('.error-bars line')).toBe(2);
    expect(count('.error-bars path')).toBe(4);
    expect(draw(throughput({ marks: 'bar' })).count('.error-bars')).toBe(2);
  });

  it.each(['line', 'bar', 'area', 'dot'] as const)('titles the measured points of a %s plot', (marks) => {
    const { source, count } = draw(throughput({ marks }));
    expect(count('title')).toBe(3);
    expect(source).toContain('Rate: 450 TFLOP/s (445 to 455)\nwarm');
    expect(source).not.toMatch(/NaN|undefined|Infinity/);
  });

  it('stands alone: size, namespace, background, no variables, no style', () => {
    const { source } = draw(throughput(), { theme: 'dark', width: 500, height: 300 });
    expect(source).toMatch(/^<svg [^>]*viewBox="0 0 500 300"/);
    expect(source).toContain(
      'aria-label="Throughput &lt;by&gt; context. ours: 1,024 300 TFLOP/s, 8,192 450 TFLOP/s. ' +
        'theirs: 1,024 250 TFLOP/s, 8,192 OOM"',
    );
    expect(source).toContain('xmlns="http://www.w3.org/2000/svg"');
    expect(source).toContain('fill="#14171b"');
    expect(source).not.toMatch(/var\(|<style/);
    expect(renderSvg(throughput())).not.toContain('#14171b');
  });

  it('is the same each time', () => expect(renderSvg(throughput())).toBe(renderSvg(throughput())));

  it('sets categories in rows where their names have no room next to one another', () => {
    const points = Array.from({ length: 12 }, (_, index) => ({
      x: `a long category ${index}`,
      y: index + 1,
    }));
    const { source, texts, bars } = draw(throughput({ marks: 'bar', series: [{ name: 'only', points }] }), {
      width: 400,
    });
    expect(source).not.toContain('rotate');
    expect(texts.filter((text) => text.startsWith('a long category'))).toEqual(points.map(({ x }) => x));
    expect(bars.map(({ y }) => y)).toEqual(bars.map(({ y }) => y).toSorted((a, b) => a - b));
    expect(new Set(bars.map(({ x }) => x)).size).toBe(1);
  });

  it('says in rows why a bar is missing, and each value at the end of its bar', () => {
    const series = [
      {
        name: 's',
        points: [
          { x: 'a', y: 2 },
          { x: 'b', y: null, note: 'out of memory' },
        ],
      },
    ];
    const { texts } = draw(throughput({ marks: 'bar', series, references: [] }));
    expect(texts).toEqual(expect.arrayContaining(['a', 'b', '2', 'out of memory']));
  });

  it('makes bars of lines through a single point', () => {
    const series = ['ours', 'PyTorch'].map((name, y) => ({ name, points: [{ x: 1024, y: y + 1 }] }));
    expect(draw(throughput({ series, references: [] })).bars).toHaveLength(2);
  });

  it('says of a line on another that it lies there, and dashes it', () => {
    const line = (name: string, factor: number) => ({
      name,
      points: [1, 10, 100].map((x) => ({ x, y: x * factor })),
    });
    const drawn = (factor: number) =>
      draw(throughput({ series: [line('a', 1), line('b', factor)], references: [] }));
    expect(drawn(1.001).texts).toContain('b (on a)');
    expect(drawn(1.001).source).toContain('stroke-dasharray="7 5"');
    expect(drawn(1.5).texts).toContain('b');
  });

  it('gives ours and each peer a colour of their own', () => {
    const series = ['flash', 'PyTorch cuDNN', 'JAX', 'floor'].map((name, index) => ({
      name,
      points: [1, 2].map((x) => ({ x, y: x + index })),
    }));
    const colors = (names: readonly number[]) => {
      const { source } = draw(throughput({ series: names.map((index) => series[index]!), references: [] }));
      return [...source.matchAll(/stroke="(#[0-9a-f]{6})" fill="none" aria-label="line"/g)].map(([, c]) => c);
    };
    expect(colors([0, 1, 2, 3])).toEqual(['#0b67a8', '#b84a00', '#8f3f80', '#4d5661']);
    expect(colors([1, 0])).toEqual(['#b84a00', '#0b67a8']);
  });

  it('refuses values that the axes cannot take, naming plot and value', () => {
    const withPoint = (x: number | string, y: number, scale: 'linear' | 'log') =>
      throughput({
        y: { label: 'Rate', scale },
        series: [
          {
            name: 's',
            points: [
              { x, y },
              { x: 2, y: 2 },
            ],
          },
        ],
      });
    expect(() => renderSvg(withPoint(1, 0, 'log'))).toThrow(/'throughput': y is 0, a log axis/);
    expect(() => renderSvg(withPoint(1, NaN, 'linear'))).toThrow(/y is "NaN".*give null/);
    expect(() => renderSvg(withPoint('small', 1, 'linear'))).toThrow(/x is "small".*log axis/);
  });

  it('draws a plot in which nothing was measured', () => {
    const points = [{ x: 1024, y: null, note: 'OOM' }];
    expect(draw(throughput({ series: [{ name: 's', points }], references: [] })).texts).toContain('OOM');
    expect(draw(throughput({ series: [] })).texts).toContain('Rate (TFLOP/s)');
  });

  it('stacks bars: the axis spans their sum, and each begins where the one below ends', () => {
    const plot = throughput({
      x: { label: 'Model', scale: 'category' },
      marks: 'bar',
      stacked: true,
      references: [],
      series: [
        { name: 'forward', points: [{ x: 'small', y: 40, low: 35, high: 45 }] },
        { name: 'backward', points: [{ x: 'small', y: 60, low: 50, high: 70 }] },
      ],
    });
    const { source, texts, bars } = draw(plot);
    expect(texts).toContain('100');
    const [lower, upper] = bars;
    expect(upper!.x).toBe(lower!.x);
    expect(upper!.y + upper!.height).toBeCloseTo(lower!.y, 3);
    expect(upper!.height / lower!.height).toBeCloseTo(1.5, 3);
    expect(source).toContain('Rate: 60 TFLOP/s (50 to 70)');
  });

  it('refuses to stack what cannot be', () => {
    expect(() => renderSvg(throughput({ stacked: true }))).toThrow(
      /'throughput': only bars on a linear y axis/,
    );
    const series = [{ name: 's', points: [{ x: 1, y: -1 }] }];
    expect(() => renderSvg(throughput({ marks: 'bar', stacked: true, series }))).toThrow(/y is -1, stacked/);
  });

  it('cuts an error bar off where a logarithmic axis ends', () => {
    const points = [{ x: 1, y: 10, low: -5, high: 20 }];
    const { source, count } = draw(
      throughput({ y: { label: 'T', scale: 'log' }, series: [{ name: 's', points }] }),
    );
    expect(count('.error-bars line')).toBe(1);
    expect(source).not.toContain('NaN');
  });

  it('cuts a band off where a logarithmic axis ends, and leaves no gap in it', () => {
    const bandFrom = (low: number) => {
      const points = [1, 2, 4].map((x) => ({ x, y: 10, low: x === 2 ? low : 5, high: 20 }));
      const series = [{ name: 's', points }];
      const { source } = draw(throughput({ marks: 'area', y: { label: 'T', scale: 'log' }, series }));
      return /aria-label="area"><path d="([^"]*)"/.exec(source)![1]!;
    };
    expect(bandFrom(0)).toBe(bandFrom(5));
    expect(bandFrom(5).match(/L/g)).toHaveLength(5);
  });

  it.each(['line', 'dot', 'bar'] as const)(
    'gives no two of 12 series of a %s plot the same look',
    (marks) => {
      const series = Array.from({ length: 12 }, (_, index) => ({
        name: `s${index}`,
        points: [{ x: 1, y: index + 1 }],
      }));
      const { source } = draw(throughput({ marks, series, references: [] }));
      const shapes = /<g ([^>]*)aria-label="(?:dot|rect)"><(?:circle|path d="[^"]*"|rect)[^>]*>(?:<title>)?/g;
      const looks = Array.from(source.matchAll(shapes), ([look]) =>
        look.replace(/ (?:c?x|c?y|height|width|transform)="[^"]*"/g, ''),
      );
      const [drawn, legend] = [true, false].map((titled) =>
        looks.filter((look) => look.endsWith('<title>') === titled),
      );
      expect([drawn, legend].map((each) => each!.length)).toEqual([12, 12]);
      expect([drawn, legend].map((each) => new Set(each).size)).toEqual([12, 12]);
    },
  );

  it('leaves room for the last number of a horizontal axis', () => {
    const points = [0, 1, 2, 3, 4].map((x) => ({ x: x * 25e6, y: x }));
    const { source, texts } = draw(
      throughput({ x: { label: 'Tokens', scale: 'linear' }, series: [{ name: 's', points }] }),
      { width: 720 },
    );
    expect(texts).toContain('100,000,000');
    const [, middle] = /translate\(([\d.]+),[\d.]+\)"[^>]*>100,000,000</.exec(source)!;
    // At 6.7 pixels a digit and 3.4 a comma the text is 67 wide.
    expect(Number(middle) + 67 / 2).toBeLessThan(720);
  });

  it('breaks a title that is longer than the image is wide', () => {
    const title = 'Kernels under the roof: small · context 256 · batch 4 · train-step · bfloat16 · compiled';
    const lines = (width: number) => {
      const { texts } = draw(throughput({ title }), { width });
      return texts.filter((text) => title.includes(text) && text.length > 12);
    };
    expect(lines(860)).toEqual([title]);
    expect(lines(500).join(' ')).toBe(title);
    // At 8 pixels a character.
    for (const line of lines(500)) expect(line.length * 8).toBeLessThan(500);
  });

  it.each([
    ['linear', ['8', '16', '32']],
    ['category', ['8', '32', '16']],
  ] as const)('sets bars of numbers on a %s axis in its order', (scale, order) => {
    const series = [
      { name: 'a', points: [8, 32].map((x) => ({ x, y: 1000 + x })) },
      { name: 'b', points: [{ x: 16, y: 1000 }] },
    ];
    const { texts } = draw(throughput({ marks: 'bar', x: { label: 'Size', scale }, series, references: [] }));
    expect(texts.filter((text) => ['8', '16', '32'].includes(text))).toEqual(order);
  });

  describe('of texts that take most of an image', () => {
    const phone = { width: 400, height: 340 };
    const frameOf = (plot: Plot) => {
      const { x, y, height, margin } = layOut(withDefaults(plot), { ...phone, standalone: true });
      expect(draw(plot, phone).source).toContain(`viewBox="0 0 400 ${height}"`);
      return { x, y, width: 400 - margin.left - margin.right, height: height - margin.top - margin.bottom };
    };

    it('keeps a quarter of the height for the plot, and is higher for the rest', () => {
      const series = Array.from({ length: 24 }, (_, index) => ({
        name: `size ${index}, train-step, bfloat16`,
        points: [{ x: 'small', y: index }],
      }));
      expect(Math.floor(frameOf(throughput({ marks: 'bar', series })).height)).toBe(340 / 4);
      expect(layOut(withDefaults(throughput()), { ...phone, standalone: true }).height).toBe(340);
    });

    it('shortens the names of categories, which the tooltips have in full', () => {
      const names = [1, 2, 3].map(
        (batch) => `batch ${batch}, context 512, dtype bfloat16, mode train-step, compiled`,
      );
      const plot = throughput({
        marks: 'bar',
        series: [{ name: 's', points: names.map((x) => ({ x, y: 1 })) }],
      });
      const { source, texts } = draw(plot, phone);
      expect(texts.filter((text) => text.includes('…'))).toHaveLength(3);
      for (const name of names) expect(source).toContain(`Context: ${name}`);
    });
  });
});
