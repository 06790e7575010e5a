import { afterAll, describe, expect, it } from 'vitest';
import { renderHtml } from '../../src/index.ts';
import type { Block, Report } from '../../src/index.ts';
import { longTimeline, manyAllocations, smallAllocations, smallTimeline } from '../chart-fixtures.ts';
import { sampleReport } from '../fixtures.ts';
import { openBrowser } from './browser.ts';
import { paintedBy } from './painted.ts';

const browser = openBrowser();

const reportOf = (block: Block): Report =>
  sampleReport({ sections: [{ id: 's', title: 'S', blocks: [block] }] });

describe('charts in HTML', () => {
  it('keeps a timeline of 10,000 slices far below 5 MB', () => {
    expect(renderHtml(reportOf(longTimeline(10_000))).length).toBeLessThan(1e6);
  });

  it('gives the same in numbers, and the script only to pages that have a chart', () => {
    const html = renderHtml(reportOf(smallTimeline()));
    expect(html).toContain('id="step-timeline"');
    expect(html).toMatch(/<details>[^]*backward[^]*<\/details>/);
    expect(html).toContain('class TimelineChart extends Chart');
    expect(html).not.toMatch(/^(import|export) /m);
    expect(renderHtml(sampleReport())).not.toContain('TimelineChart');
  });
});

it('paints what has no category in a colour of its own, whatever is below it', () => {
  const bands = (categories: (string | undefined)[]) => {
    const allocations = categories.map((category, index) => ({
      ...{ label: `allocation ${index}`, bytes: 1000, startUs: 0, endUs: null },
      ...(category !== undefined && { category }),
    }));
    const painted = paintedBy('allocations.js', smallAllocations({ allocations, reserved: [] }));
    return painted.filter(({ height }) => height > 50 && height < 300).map(({ fill }) => fill);
  };
  const [plain] = bands([undefined, 'weights']);
  expect(plain).not.toContain('series');
  expect(bands(['weights', undefined])).toEqual(['var(--series-1)', plain]);
});

describe.skipIf(!browser)('charts in a browser (skipped where there is no Chromium)', () => {
  afterAll(() => browser?.close());

  const STEPS = `
    const canvas = $('canvas');
    const view = () => $('figure.chart').dataset.view.split(' ').map(Number);
    const wheel = (deltaY) => {
      const event = new WheelEvent('wheel', { deltaY, clientX: box().left + box().width / 2, clientY: box().top + 40, bubbles: true, cancelable: true });
      canvas.dispatchEvent(event);
      return event.defaultPrevented;
    };
    const box = () => canvas.getBoundingClientRect();
    const pointer = (type, x, y) => canvas.dispatchEvent(new PointerEvent(type, {
      pointerId: 1, clientX: box().left + x, clientY: box().top + y, bubbles: true }));
    canvas.setPointerCapture = () => {};
    await frame();`;
  const ask = (block: Block, steps: string) => browser!.ask(reportOf(block), STEPS + steps);

  it('zooms by wheel once clicked, by key and by button, and moves by drag', async () => {
    const answer = await ask(
      smallTimeline(),
      `const seen = [view()];
       const scrolled = !wheel(-400);
       $('.canvas').focus();
       const zoomed = wheel(-400);
       await frame();
       seen.push(view());
       $('.canvas').dispatchEvent(new KeyboardEvent('keydown', { key: '0' }));
       await frame();
       seen.push(view());
       $('[data-zoom=in]').click();
       await frame();
       seen.push(view());
       pointer('pointerdown', 100, 40); pointer('pointermove', 0, 40); pointer('pointerup', 0, 40);
       await frame();
       seen.push(view());
       return { seen, scrolled, zoomed, width: box().width, said: $('.tools output').textContent };`,
    );
    const { seen, scrolled, zoomed, width, said } = answer as {
      seen: [number, number][];
      scrolled: boolean;
      zoomed: boolean;
      width: number;
      said: string;
    };
    expect([scrolled, zoomed]).toEqual([true, true]);
    expect(seen[0]).toEqual([0, 150]);
    expect(seen[1]![1] - seen[1]![0]).toBeCloseTo(150 * Math.exp(-0.6), 1);
    expect(seen[2]).toEqual([0, 150]);
    expect(seen[3]).toEqual([37.5, 112.5]);
    expect(seen[4]![0]).toBeCloseTo(37.5 + (75 * 100) / width, 1);
    expect(said).toMatch(/^4\d\.\d\d µs to 1\d\d\.\d\d µs of 150\.0 µs$/);
  });

  it('describes the slice under the pointer, fills the view with it, and finds names', async () => {
    const answer = await ask(
      smallTimeline(),
      `const x = box().width * 15 / 150;
       pointer('pointermove', x, 24 + 20 + 20 + 8);
       const told = $('.chart-tip').innerText.split('\\n');
       canvas.dispatchEvent(new MouseEvent('dblclick', { clientX: box().left + x, clientY: box().top + 72, bubbles: true }));
       await frame();
       const input = $('figure.chart input');
       input.value = 'WARD'; input.dispatchEvent(new Event('input'));
       await frame();
       return [told, view(), $('.tools output').textContent.split(';')[0]];`,
    );
    expect(answer).toEqual([['attention', '20.00 µs, from 10.0 µs', 'Ranges'], [9, 31], '2 found, 150.0 µs']);
  });

  it('keeps up with 10,000 slices, wherever it is zoomed to', async () => {
    const answer = await ask(
      longTimeline(10_000),
      `const times = [];
       for (let turn = 0; turn < 8; turn += 1) {
         $('[data-zoom=in]').click();
         const start = performance.now();
         await frame();
         times.push(performance.now() - start);
       }
       const [from, to] = view();
       return { typical: times.sort((a, b) => a - b)[4], factor: 100_000 / (to - from) };`,
    );
    const { typical, factor } = answer as { typical: number; factor: number };
    expect(factor).toBeCloseTo(256, -1);
    expect(typical).toBeLessThan(500);
  });

  it('hides the smallest allocations by the slider, and says how much that is', async () => {
    const answer = await ask(
      smallAllocations(),
      `const slider = $('figure.chart input');
       const set = async (value) => {
         slider.value = value; slider.dispatchEvent(new Event('input'));
         await frame();
         return $('.tools output').textContent.split(';')[0];
       };
       const said = [await set(1000), await set(430), await set(0)];
       await set(1000);
       pointer('pointermove', 72 + (box().width - 72) * 0.3, 24 + 320 * (1 - 1200 / (2048 * 1.04)));
       return [said, $('.chart-tip').innerText.split('\\n')];`,
    );
    expect(answer).toEqual([
      [
        'All 4 allocations drawn',
        '3 smallest in one grey band: each at most 500 B, together at most 600 B, 37.5 % of the peak',
        '4 smallest in one grey band: each at most 1000 B, together at most 1.56 KiB, 100.0 % of the peak',
      ],
      ['scores', '500 B, activations', 'from 10.00 µs to 20.00 µs', 'matmul', 'step'],
    ]);
  });

  it('paints, and repaints when the theme is switched', async () => {
    const answer = await ask(
      manyAllocations(5000),
      `const seen = [canvas.toDataURL()];
       $('button.theme').click();
       await frame();
       seen.push(canvas.toDataURL());
       const blank = document.createElement('canvas');
       [blank.width, blank.height] = [canvas.width, canvas.height];
       return [seen[0] !== blank.toDataURL(), seen[0] !== seen[1]];`,
    );
    expect(answer).toEqual([true, true]);
  });

  it('prints in the colours of paper, whatever the theme', async () => {
    const answer = await ask(
      smallTimeline(),
      `const printed = () => { dispatchEvent(new Event('beforeprint')); return canvas.toDataURL(); };
       document.documentElement.dataset.theme = 'light';
       const light = printed();
       document.documentElement.dataset.theme = 'dark';
       const dark = printed();
       dispatchEvent(new Event('afterprint'));
       await frame();
       return [light === dark, canvas.toDataURL() === dark];`,
    );
    expect(answer).toEqual([true, false]);
  });
});
