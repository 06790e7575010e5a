import { afterAll, describe, expect, it } from 'vitest';
import { renderHtml, renderMarkdown, renderSvg } from '../../src/index.ts';
import type { Plot } from '../../src/index.ts';
import { manyRows, sampleReport, throughput } from '../fixtures.ts';
import { openBrowser } from './browser.ts';

const chart = (): Plot => ({ ...throughput(), id: 'at-a-glance', title: 'At a glance' });
const findings = Array.from({ length: 7 }, (_, index) => `Finding ${index}.`);

describe('what a report begins with', () => {
  it('is three findings, the others after them, and a chart', () => {
    const html = renderHtml(sampleReport({ summary: findings, chart: chart() }));
    const opening = html.slice(html.indexOf('<header>'), html.indexOf('</header>'));
    expect(opening).toMatch(/Finding 2\.<\/li><\/ul><details class="more"><summary>4 more<\/summary>/);
    expect(opening).toContain('<figure class="plot" id="at-a-glance">');
    expect(renderHtml(sampleReport({ summary: findings.slice(0, 3) }))).not.toContain('class="more"');
  });

  it('is all of it in Markdown', () => {
    const markdown = renderMarkdown(sampleReport({ summary: findings, chart: chart() }));
    expect(markdown).toMatch(/- Finding 6\.\n\n### At a glance\n/);
  });

  it('is refused as any other block is', () => {
    expect(() => renderHtml(sampleReport({ chart: { ...chart(), id: 'throughput' } }))).toThrow(
      "id 'throughput'",
    );
    expect(() => renderHtml(sampleReport({ chart: { kind: 'table' } as never }))).toThrow('renderHtml: plot');
  });
});

describe('plots', () => {
  it('that follow one another are side by side', () => {
    const blocks = [chart(), throughput(), manyRows(2)];
    const html = renderHtml(sampleReport({ sections: [{ id: 's', title: 'S', blocks }] }));
    expect(html).toMatch(
      /<div class="plots">[^]*at-a-glance[^]*throughput[^]*<\/figure><\/div>\n<figure class="table/,
    );
  });

  it('have no bars on a logarithmic axis', () => {
    const bars = throughput({ marks: 'bar', y: { label: 'Rate', scale: 'log' } });
    expect(() => renderSvg(bars)).toThrow("plot 'throughput': bars on a logarithmic y axis");
  });
});

const browser = openBrowser();

describe.skipIf(!browser)('a long table in a browser (skipped where there is no Chromium)', () => {
  afterAll(() => browser?.close());

  it('shows ten rows until it is asked for all', async () => {
    const answer = await browser!.ask(
      sampleReport({ sections: [{ id: 's', title: 'S', blocks: [manyRows(30)] }] }),
      `const shown = () => [...document.querySelectorAll('#many tbody tr')].filter((row) => row.offsetHeight > 0).length;
       const seen = [shown(), $('#many .unfold').textContent];
       $('#many th button').click();
       seen.push(shown());
       $('#many .unfold').click();
       return [...seen, shown(), $('#many .unfold').hidden];`,
    );
    expect(answer).toEqual([10, 'All 30 rows', 10, 30, true]);
  });

  it('shows a C++ name in short, and as whole in what is copied', async () => {
    const name = 'void at::native::elementwise_kernel<128, 2, at::native::MulFunctor<float> >(int, float)';
    const table = { ...manyRows(1), rows: [{ size: name, step: 1 }] };
    const answer = await browser!.ask(
      sampleReport({ sections: [{ id: 's', title: 'S', blocks: [table] }] }),
      `let copied = '';
       Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (text) => void (copied = text) } });
       const cell = () => [$('#many td span').textContent, $('#many td span').title];
       const before = cell();
       $('#many th button').click();
       $('#many [data-copy="CSV"]').click();
       await new Promise((done) => setTimeout(done, 10));
       return [before, cell(), copied.split('\\n')[1].startsWith('"void at::native')];`,
    );
    expect(answer).toEqual([
      ['elementwise_kernel<MulFunctor>', name],
      ['elementwise_kernel<MulFunctor>', name],
      true,
    ]);
  });
});
