import { parseHTML } from 'linkedom';
import { describe, expect, it } from 'vitest';
import { renderHtml } from '../../src/index.ts';
import type { Report } from '../../src/index.ts';
import { HOSTILE, manyRows, measurements, sampleReport } from '../fixtures.ts';

function open(report: Report) {
  const html = renderHtml(report);
  const { document } = parseHTML(html);
  const texts = (selector: string) =>
    [...document.querySelectorAll(selector)].map((element) => element.textContent.trim());
  return { html, document, texts };
}

describe('renderHtml', () => {
  it('has the sections, and a navigation whose links find them', () => {
    const { document, texts } = open(sampleReport());
    expect(texts('h1')).toEqual(['Benchmark <one>']);
    expect(texts('nav a')).toEqual(['Summary', 'First', 'Second', 'Environment']);
    for (const link of document.querySelectorAll('nav a')) {
      expect(document.getElementById(link.getAttribute('href')!.slice(1))).not.toBeNull();
    }
    expect(texts('.findings strong')).toEqual(['fast']);
    expect(texts('time')).toEqual(['2025-11-21 00:47 UTC']);
    expect(texts('#environment td')).toEqual(['GPU', 'NVIDIA H200 & friends', 'Seed', '0']);
    expect(texts('aside.warning')).toEqual(['Wide spread']);
  });

  it('fetches nothing: the only addresses are plain links', () => {
    const { html, document } = open(sampleReport());
    expect(document.querySelectorAll('[src], link, iframe, object, embed, base')).toHaveLength(0);
    const addresses = [...html.matchAll(/https?:\/\/[^\s"'<)]+/g)].map(([address]) => address);
    expect(new Set(addresses)).toEqual(
      new Set(['http://www.w3.org/2000/svg', 'https://example.org/a?b=1&amp;c=2']),
    );
    expect(html).not.toMatch(/@import|url\((?!#)/);
    expect(html).toContain(`content="default-src 'none';`);
  });

  it('shows failed rows, missing values and the share of the roof', () => {
    const { document, texts } = open(sampleReport());
    expect(texts('#steps tr.failed:first-of-type td, #steps tr:nth-child(3) td')).toEqual([
      'huge',
      'OOM',
      'OOM',
      'OOM',
      'OOM',
    ]);
    expect(document.querySelector('#steps tr.failed')!.getAttribute('title')).toContain('asked 12 GiB');
    expect(texts('#steps tr:nth-child(2) td.bytes.empty')).toEqual(['–']);
    const bars = [...document.querySelectorAll('#steps td.share i')];
    expect(bars.map((bar) => bar.getAttribute('style'))).toEqual(['--share:0.5', '--share:0.123']);
    expect(texts('#steps .failures li')).toHaveLength(2);
  });

  it('keeps hostile text from becoming markup, in cells and in the embedded data', () => {
    const { html, document, texts } = open(sampleReport());
    expect(texts('#steps tr:nth-child(2) td:first-child')).toEqual([HOSTILE]);
    expect(html).not.toContain('<script>alert');
    const data = JSON.parse(document.querySelector('#steps script.data')!.textContent) as {
      fields: { key: string; values: unknown[] }[];
      failed: number[];
    };
    expect(data.fields.find(({ key }) => key === 'size')!.values[1]).toBe(HOSTILE);
    expect(data.failed).toEqual([2, 3]);
    const scripts = [...html.matchAll(/<script\b[^>]*>/g)].length;
    expect([...html.matchAll(/<\/script>/g)]).toHaveLength(scripts);
  });

  it('shows the first lines of long texts, with the whole text one click away', () => {
    const table = measurements();
    table.rows[0]!.size = 'long '.repeat(20);
    const html = renderHtml(sampleReport({ sections: [{ id: 's', title: 'S', blocks: [table] }] }));
    expect(html).toContain(`<span class="lines" title="${table.rows[0]!.size}">`);
    expect(html.match(/class="lines"/g)).toHaveLength(2);
  });

  it('marks sortable headings, and describes columns', () => {
    const table = measurements();
    table.columns[1]!.description = 'By device "events"';
    const { document } = open(sampleReport({ sections: [{ id: 's', title: 'S', blocks: [table] }] }));
    const heads = [...document.querySelectorAll('#steps th')];
    expect(heads.map((head) => head.getAttribute('aria-sort'))).toEqual(Array(5).fill('none'));
    expect(heads[1]!.getAttribute('title')).toBe('By device "events"');
    expect(heads[1]!.querySelector('.unit')!.textContent).toBe('ms');
  });

  it('draws plots inline in colours of the theme, with their numbers below', () => {
    const { document, texts } = open(sampleReport());
    const drawings = [...document.querySelectorAll('#throughput svg')];
    expect(drawings).toHaveLength(2);
    expect(drawings[0]!.outerHTML).toContain('var(--series-1)');
    expect(drawings[0]!.outerHTML).not.toMatch(/#[0-9a-f]{6}/);
    expect(texts('#throughput details td')).toEqual([
      ...['1024', '300', '290', '310', '250'],
      ...['8192', '450', '445', '455', 'OOM'],
    ]);
  });

  it('stays under 5 MB with 10,000 rows, of which it draws the first page', () => {
    const table = manyRows(10_000);
    const { html, document } = open(sampleReport({ sections: [{ id: 's', title: 'S', blocks: [table] }] }));
    expect(Buffer.byteLength(html)).toBeLessThan(5e6);
    expect(document.querySelectorAll('#many tbody tr')).toHaveLength(100);
    const data = JSON.parse(document.querySelector('#many script.data')!.textContent) as { rowCount: number };
    expect(data.rowCount).toBe(10_000);
  });

  it('refuses the id of its own data, which its scripts look for', () => {
    const [section, ...others] = sampleReport().sections;
    const sections = [{ ...section!, id: 'form-escapes' }, ...others];
    expect(() => renderHtml({ ...sampleReport(), sections })).toThrow("'form-escapes'");
  });

  it('has no control codes to copy or save', () => {
    const rows = [{ size: 'a\u001b[2J\u202eb', status: 'failed' as const, error: '\u0007' }];
    const table = { ...measurements(), rows };
    const { document } = open({ ...sampleReport(), sections: [{ id: 's', title: 'S', blocks: [table] }] });
    const data = JSON.parse(document.querySelector('#steps script.data')!.textContent) as object;
    expect(JSON.stringify(data)).toContain('a\ufffd[2J\ufffdb');
    expect(JSON.stringify(data)).not.toMatch(/\\u00|\u202e/);
  });

  it('refuses ids that are taken or no anchors', () => {
    const withId = (id: string) => sampleReport({ sections: [{ id, title: 'S', blocks: [measurements()] }] });
    expect(() => renderHtml(withId('steps'))).toThrow(/two parts of the report have the id 'steps'/);
    expect(() => renderHtml(withId('environment'))).toThrow(/'environment'/);
    expect(() => renderHtml(withId('a b'))).toThrow(/'a b' cannot be an anchor/);
  });
});
