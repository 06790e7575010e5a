import { describe, expect, it } from 'vitest';
import { renderSvg } from '../../src/index.ts';
import { longTimeline, smallAllocations, smallTimeline } from '../chart-fixtures.ts';

const rectangles = (svg: string) => [...svg.matchAll(/<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"/g)];
/** The end of the width is at the padding of the right side. */
const right = 720 - 14;

describe('a timeline as SVG', () => {
  it('has a line for each depth of each track, over the whole width of time', () => {
    const svg = renderSvg(smallTimeline());
    // From 100 to 250 µs: forward is the first third, and backward the rest.
    const [forward, attention, backward] = ['forward', 'attention', 'backward'].map((name) => {
      const [, x, y, width] = new RegExp(
        `<rect x="([\\d.]+)" y="([\\d.]+)" width="([\\d.]+)"[^>]*><title>${name}:`,
      ).exec(svg)!;
      return { x: Number(x), y: Number(y), width: Number(width) };
    });
    expect(backward!.x).toBeCloseTo(forward!.x + forward!.width, 0);
    expect(backward!.x + backward!.width).toBeCloseTo(right, 0);
    expect(backward!.width / forward!.width).toBeCloseTo(2, 1);
    expect(attention!.y).toBeGreaterThan(forward!.y);
    expect(svg).toContain('<title>attention: 20.0 µs</title>');
    expect(svg).toContain('>Stream 7</text>');
    expect(svg).toContain('Time (µs)');
  });

  it('draws no more of ten thousand slices than an image can tell apart', () => {
    const svg = renderSvg(longTimeline(10_000));
    expect(rectangles(svg).length).toBeGreaterThan(100);
    expect(rectangles(svg).length).toBeLessThan(10_000);
    expect(svg).toContain('>softmax</text>');
  });

  it('gives slices that share a mark the colour of the longest, wherever it is among them', () => {
    const colorOf = (durations: readonly number[]) => {
      const slices = durations.map((durationUs, index) => ({
        ...{ name: `s${index}`, category: durationUs > 2 ? 'long' : 'short', durationUs },
        startUs: 5 * index,
      }));
      // Weighs most, and has the first colour.
      const whole = { name: 'whole', category: 'whole', startUs: 0, durationUs: 1e6 };
      const tracks = [
        { name: 'a', slices: [whole] },
        { name: 'b', slices },
      ];
      const svg = renderSvg(smallTimeline({ tracks, counters: [] }));
      return [...svg.matchAll(/<rect x="[\d.]+" y="[\d.]+" width="0.4" height="16" fill="([^"]+)"/g)].map(
        ([, color]) => color,
      );
    };
    const alone = colorOf([4]);
    expect(alone).toHaveLength(1);
    expect([colorOf([4, 1, 1]), colorOf([1, 4, 1]), colorOf([1, 1, 4])]).toEqual([alone, alone, alone]);
  });

  it('escapes names, and differs by theme', () => {
    const name = '<script>"&';
    const timeline = smallTimeline({ tracks: [{ name, slices: [{ name, startUs: 0, durationUs: 5 }] }] });
    expect(renderSvg(timeline)).not.toContain('<script>');
    expect(renderSvg(timeline)).not.toBe(renderSvg(timeline, { theme: 'dark' }));
  });
});

describe('allocations as SVG', () => {
  it('stack by category what is held, the first below, up to the peak', () => {
    const svg = renderSvg(smallAllocations());
    const heights = [...svg.matchAll(/<polygon points="([^"]+)"/g)].map(([, points]) => {
      const ys = points!.split(' ').map((point) => Number(point.split(',')[1]));
      return { top: Math.min(...ys), bottom: Math.max(...ys) };
    });
    expect(heights).toHaveLength(2);
    const [parameters, activations] = heights as [(typeof heights)[0], (typeof heights)[0]];
    // 1000 bytes of parameters all the time, and 500 + 100 of activations at most.
    expect(activations.bottom).toBeCloseTo(parameters.top, 0);
    const perByte = (parameters.bottom - parameters.top) / 1000;
    expect((parameters.top - activations.top) / perByte).toBeCloseTo(600, -1);
    expect(svg).toContain('aria-label="Memory of one step: at most 1.56 KiB"');
  });

  it('are drawn where nothing was allocated', () => {
    expect(renderSvg(smallAllocations({ allocations: [], reserved: [] }))).toContain('<svg');
  });
});
