import { afterAll, describe, expect, it } from 'vitest';
import type { Report } from '../../src/index.ts';
import { HOSTILE, manyRows, measurements, sampleReport } from '../fixtures.ts';
import { openBrowser } from './browser.ts';

const browser = openBrowser();

describe.skipIf(!browser)('the page in a browser (skipped where there is no Chromium)', () => {
  afterAll(() => browser?.close());
  const ask = (report: Report, steps: string) =>
    browser!.ask(
      report,
      `const filter = (text) => {
      const input = $('#many input');
      input.value = text;
      input.dispatchEvent(new Event('input'));
    };
    ${steps}`,
    );

  const long = (): Report => sampleReport({ sections: [{ id: 's', title: 'S', blocks: [manyRows(1500)] }] });

  it('sorts numbers as numbers, failed rows last, and says so to screen readers', async () => {
    const answer = await ask(
      long(),
      `const head = document.querySelectorAll('#many th')[2];
       const seen = [];
       for (let click = 0; click < 3; click += 1) {
         head.querySelector('button').click();
         seen.push([head.getAttribute('aria-sort'), ...texts('#many td:nth-child(3)').slice(0, 3)]);
         if (click !== 1) continue;
         while (!$('[data-turn="1"]').disabled) $('[data-turn="1"]').click();
         seen.push([...texts('#many td:nth-child(3)').slice(-3), $('#many .range').textContent]);
       }
       return seen;`,
    );
    expect(answer).toEqual([
      ['ascending', '0', '1', '2'],
      ['descending', '1499', '1498', '1497'],
      ['0', '1005', '5', '1,401–1,500 of 1,500'],
      ['none', '0', '1', '2'],
    ]);
  });

  it('filters, and copies and saves what is left', async () => {
    const answer = await ask(
      long(),
      `let copied = '';
       Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (text) => void (copied = text) } });
       const copy = async (form) => {
         $('#many [data-copy="' + form + '"]').click();
         await new Promise((done) => setTimeout(done, 10));
         return copied;
       };
       filter('SIZE failed');
       const said = [$('#many output').textContent, document.querySelectorAll('#many tbody tr').length];
       const forms = [await copy('Markdown'), await copy('LaTeX'), await copy('CSV')];
       said.push($('#many output').textContent);
       let saved = null;
       URL.createObjectURL = (blob) => { saved = blob; return '#'; };
       $('#many [data-save="JSON"]').click();
       return { said, forms, json: JSON.parse(await saved.text()) };`,
    );
    const { said, forms, json } = answer as { said: unknown[]; forms: string[]; json: object[] };
    expect(said).toEqual(['2 of 1,500 rows', 2, 'Copied 2 rows as CSV']);
    expect(forms[0]).toMatch(
      /^\| Size \| Type \| Step \| Metric 0 \(ms\).*\n\| --- \|.*\n\| size x \| – \| 5 \| failed/,
    );
    expect(forms[1]).toMatch(/\\midrule\n {4}size x & -- & 5 & failed.*\\\\\n.*1005/);
    expect(forms[2]!.split('\r\n')[1]).toBe('size x,,5,,,,,,,,,failed,no reason');
    expect(json[1]).toMatchObject({ size: 'size x', step: 1005, m0: null, status: 'failed' });
  });

  it('draws the same rows as the server did', async () => {
    const rows = `[...document.querySelectorAll('#steps tbody tr')].map((row) => row.outerHTML)`;
    const answer = await ask(
      sampleReport(),
      `const before = ${rows};
       const button = $('#steps th button');
       for (let click = 0; click < 3; click += 1) button.click();
       return [before, ${rows}];`,
    );
    const [before, after] = answer as [string[], string[]];
    const canonical = (html: string) => html.replaceAll(': ', ':').replaceAll(';"', '"');
    expect(after.map(canonical)).toEqual(before.map(canonical));
    expect(before[1]).toContain('&lt;script&gt;');
    expect(measurements().rows[1]!.size).toBe(HOSTILE);
  });

  it('shows the values of the point under the pointer', async () => {
    const answer = await ask(
      sampleReport(),
      `const point = $('#throughput .wide [data-tip]');
       point.scrollIntoView();
       point.dispatchEvent(new PointerEvent('pointermove', { bubbles: true }));
       return [$('.tooltip').hidden, $('.tooltip').textContent, texts('#throughput svg title').length];`,
    );
    expect(answer).toEqual([false, 'oursContext: 1024 tokensRate: 300 TFLOP/s (290 to 310)', 0]);
  });

  it('switches the theme', async () => {
    const answer = await ask(
      sampleReport(),
      `const color = () => getComputedStyle(document.body).backgroundColor;
       const seen = [color()];
       for (let click = 0; click < 2; click += 1) { $('button.theme').click(); seen.push(color()); }
       return seen;`,
    );
    const [system, other, back] = answer as string[];
    expect(new Set([system, other])).toEqual(new Set(['rgb(255, 255, 255)', 'rgb(20, 23, 27)']));
    expect(back).toBe(system);
  });

  it('opens at the section of the address, and fits a phone', async () => {
    const answer = await ask(
      sampleReport(),
      `location.hash = '#second';
       const here = () => $('nav a[aria-current]').textContent;
       for (let waits = 0; here() !== 'Second' && waits < 200; waits++) {
         await new Promise((done) => setTimeout(done, 50));
       }
       return [here(), document.documentElement.scrollWidth <= innerWidth];`,
    );
    expect(answer).toEqual(['Second', true]);
  });
});
