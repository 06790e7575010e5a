import { describe, expect, it } from 'vitest';
import { renderHtml, renderMarkdown, renderSvg, rooflineTable } from '../../src/index.ts';
import type { RooflinePlot } from '../../src/index.ts';
import { frameOf, labelDots, type Box, type Segment } from '../../src/roofline/frame.ts';
import { sampleReport } from '../fixtures.ts';

/** A ridge at 50 FLOP/byte; a product at 0.8 of its ceiling, and a copy-like kernel at 0.95 of the slope. */
function smallRoofline(changes: Partial<RooflinePlot> = {}): RooflinePlot {
  return {
    kind: 'roofline',
    id: 'roof',
    title: 'Kernels under the roof',
    ceilings: [
      { label: 'float32 products', flopsPerSecond: 50e12 },
      { label: 'bfloat16 products', flopsPerSecond: 800e12 },
    ],
    bandwidth: { label: 'copies', bytesPerSecond: 1e12 },
    points: [
      {
        name: 'gemm<float, 4>',
        category: 'forward',
        flops: 40e9,
        bytes: 4e8,
        durationMs: 1,
        ceiling: 'float32 products',
      },
      {
        name: 'adamw',
        category: 'optimizer',
        flops: 12e8,
        bytes: 28e8,
        durationMs: 2.8 / 0.95,
        note: 'once',
      },
    ],
    ...changes,
  };
}
const size = { width: 720, height: 420, standalone: true };

describe('a roofline', () => {
  it('gives intensity, rate, and the share of what the roof allows there', () => {
    const [adamw, gemm] = rooflineTable(smallRoofline()).rows;
    expect(gemm).toMatchObject({ name: 'gemm<float, 4>', intensity: 100, rate: 40, roof: 50 });
    expect(gemm!['roofShare']).toBeCloseTo(0.8, 12);
    expect(adamw!['intensity']).toBeCloseTo(12 / 28, 12);
    expect(adamw!['roof']).toBeCloseTo(12 / 28, 12);
    expect(adamw!['roofShare']).toBeCloseTo(0.95, 12);
  });

  it('puts a point without a ceiling of its own under the highest', () => {
    const [point] = smallRoofline().points;
    const { ceiling: _, ...free } = point!;
    const [row] = rooflineTable(smallRoofline({ points: [{ ...free, bytes: 1e6 }] })).rows;
    expect(row!['roof']).toBe(800);
  });

  it('draws more dots than a call takes arguments', () => {
    const [point] = smallRoofline().points;
    const points = Array.from({ length: 150_000 }, () => point!);
    expect(frameOf(smallRoofline({ points }), size).dots).toHaveLength(points.length);
  });

  it('draws dots whose areas follow their times, inside the axes, the largest first', () => {
    const points = [1, 4, 16].map((durationMs, index) => ({
      ...{ name: `kernel ${index}`, flops: 1e9, bytes: 10 ** (6 + index) },
      durationMs,
    }));
    const { dots, layout } = frameOf(smallRoofline({ points }), size);
    expect(dots.map(({ point }) => point.durationMs)).toEqual([16, 4, 1]);
    expect(dots.map(({ radius }) => radius)).toEqual([15, 7.5, 3.75]);
    for (const { left, top } of dots) {
      expect(left).toBeGreaterThan(layout.margin.left);
      expect(left).toBeLessThan(layout.width - layout.margin.right);
      expect(top).toBeGreaterThan(layout.margin.top);
      expect(top).toBeLessThan(layout.height - layout.margin.bottom);
    }
  });

  it('names dots on either side, and leaves out names that would cover others', () => {
    const one = smallRoofline().points[0]!;
    const alike = Array.from({ length: 7 }, (_, index) => ({ ...one, name: `kernel ${index}` }));
    expect(labelDots(frameOf(smallRoofline(), size), (name) => name, [], [])).toHaveLength(2);
    expect(labelDots(frameOf(smallRoofline({ points: alike }), size), (name) => name, [], [])).toHaveLength(
      2,
    );
  });

  it('names no dot across the roof, nor across another name', () => {
    const frame = frameOf(smallRoofline(), size);
    const boxes = (named: readonly Box[], lines: readonly Segment[]) =>
      labelDots(frame, (name) => name, named, lines).map((label) => label.box);
    const [box] = boxes([], []) as [Box];
    const through = { left: 0, top: (box.top + box.bottom) / 2 };
    expect(boxes([], [[through, { ...through, left: size.width }]])).not.toContainEqual(box);
    expect(boxes([box], [])).not.toContainEqual(box);
    expect(
      boxes(
        [],
        [
          [
            { left: 0, top: 0 },
            { left: size.width, top: 0 },
          ],
        ],
      ),
    ).toContainEqual(box);
  });

  it('describes each dot in words, with its share of the roof', () => {
    const svg = renderSvg(smallRoofline());
    expect(svg).toContain(
      '<title>gemm&lt;float, 4&gt;\nforward\n40.0 TFLOP/s at 100 FLOP/byte\n80.0 % of the roof',
    );
    expect(svg).toContain('float32 products: 50.0 TFLOP/s');
    expect(svg).toContain('copies: 1.00 TB/s');
    expect(svg).toContain('once');
    expect(svg).not.toMatch(/NaN|Infinity/);
  });

  it('says in words what is at the roof, and what is above it', () => {
    const [point] = smallRoofline().points;
    const told = (flops: number) =>
      renderSvg(smallRoofline({ spread: 0.02, points: [{ ...point!, bytes: 1e6, flops }] }));
    expect(told(49.5e9)).toContain('at the roof');
    expect(told(50.5e9)).toContain('at the roof');
    expect(told(56e9)).toContain('112 %, above the roof');
    expect(told(48e9)).toContain('96.0 % of the roof');
  });

  it('is drawn without any points, and with one that is far off', () => {
    expect(renderSvg(smallRoofline({ points: [] }))).toContain('</svg>');
    const far = { name: 'x', flops: 1, bytes: 1e12, durationMs: 1e6 };
    expect(renderSvg(smallRoofline({ points: [far] }), { width: 320, height: 240 })).not.toMatch(
      /NaN|Infinity/,
    );
  });

  it('is a plot with its table in a page, an image or a table in Markdown', () => {
    const report = sampleReport({ sections: [{ id: 's', title: 'S', blocks: [smallRoofline()] }] });
    expect(renderHtml(report)).toMatch(/<figure class="plot" id="roof">[^]*<details>[^]*FLOP\/byte/);
    expect(renderMarkdown(report, { plotPath: ({ id }) => `plots/${id}.svg` })).toContain(
      '](plots/roof.svg)',
    );
    expect(renderMarkdown(report)).toContain('| adamw');
  });

  it('refuses ceilings that are not there', () => {
    const of = (changes: object) => () => renderSvg(smallRoofline(changes));
    expect(of({ ceilings: [] })).toThrow('roofline.ceilings must be a list of at least one ceiling');
    const stray = { ...smallRoofline().points[0]!, ceiling: 'int8' };
    expect(of({ points: [stray] })).toThrow(
      "roofline.points[0].ceiling must be 'float32 products' or 'bfloat16 products', not 'int8'",
    );
    expect(of({ points: [{ ...stray, flops: 0 }] })).toThrow(
      'points[0].flops must be a finite number above 0',
    );
  });
});
