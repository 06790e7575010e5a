import { expect, it } from 'vitest';
import { renderMarkdown } from '../../src/index.ts';
import { measurements, sampleReport } from '../fixtures.ts';

it('aligns the pipe table and its source', () => {
  const table = measurements();
  table.rows.splice(1, 1);
  expect(renderMarkdown(table)).toBe(
    [
      '| Size  |  Time (ms) | Peak memory (GiB) | Ours / PyTorch | Share of the roof |',
      '| ----- | ---------: | ----------------: | -------------: | ----------------: |',
      '| small | 12.3 ± 0.4 |              3.00 |          0.58× |            50.0 % |',
      '| huge  |        OOM |               OOM |            OOM |               OOM |',
      '| slow  |    timeout |           timeout |        timeout |           timeout |',
      '',
    ].join('\n'),
  );
});

it('does not widen every row of its source for one long cell', () => {
  const table = measurements();
  table.rows = [{ size: 'x'.repeat(400) }, { size: 'y' }];
  const [long, short] = renderMarkdown(table).split('\n').slice(2);
  expect(long!.length).toBeGreaterThan(400);
  expect(short!.length).toBeLessThan(150);
});

it('escapes what Markdown would read as markup', () => {
  const [row] = renderMarkdown(measurements())
    .split('\n')
    .filter((line) => line.includes('flag'));
  expect(row).toContain('a\\|b &amp; c\\_d #1 \\$x\\$ 50% \\~{y}^ \\\\n "q" &lt;script&gt;');
  expect(row).toContain('\\[z\\] \\*w\\* \\`v\\`');
  expect(row!.replaceAll('\\|', '').match(/\|/g)).toHaveLength(6);
});

it('writes a whole report: summary, sections, plots as tables, failures, environment', () => {
  const text = renderMarkdown(sampleReport());
  expect(text).toContain('# Benchmark &lt;one&gt;');
  expect(text).toContain('- It is **fast**.');
  expect(text).toContain('## First');
  expect(text).toContain('- 1 row OOM: asked 12 GiB');
  expect(text).toMatch(/\| Context \(tokens\) \| +ours \(TFLOP\/s\) \| .* \| theirs \(TFLOP\/s\) \|/);
  expect(text).toMatch(/\| +8192 \| +450 \| +445 \| +455 \| +OOM \|/);
  expect(text).toContain('> Wide spread');
  expect(text).toMatch(/\| GPU +\| NVIDIA H200 &amp; friends \|/);
});

it('shows HTML in the date as written', () => {
  expect(renderMarkdown(sampleReport({ createdAt: '<b>today</b>' }))).toContain(
    'Created &lt;b&gt;today&lt;/b&gt;.',
  );
});

it('points to images of plots where it is given their path', () => {
  const text = renderMarkdown(sampleReport(), { plotPath: ({ id }) => `plots/${id}.svg` });
  expect(text).toContain('![Throughput &lt;by&gt; context](plots/throughput.svg)');
});

it('gives what prose leads to an anchor of that id, and nothing else', () => {
  const report = sampleReport();
  const [first] = report.sections;
  const table = { ...measurements(), id: 'led-to' };
  const text = renderMarkdown({
    ...report,
    summary: [`[here](#${first!.id}) and [there](#led-to)`],
    sections: [...report.sections, { id: 'last', title: 'Last', blocks: [table] }],
  });
  expect(text).toContain(`<a id="${first!.id}"></a>\n\n## ${first!.title}\n`);
  expect(text).toContain(`<a id="led-to"></a>\n\n### `);
  expect(text.match(/<a id=/g)).toHaveLength(2);
});

it('shows HTML in prose as written, and leaves its own markup and code', () => {
  const text = '**1** <b>x</b> `<b>` <0.01 % &lt; a & b';
  const report = sampleReport();
  const shown = '**1** &lt;b>x&lt;/b> `<b>` <0.01 % &amp;lt; a & b';
  const markdown = renderMarkdown({
    ...report,
    subtitle: text,
    summary: [text],
    sections: [
      {
        id: 'a',
        title: 'A',
        text: [text],
        blocks: [
          { kind: 'note', text },
          { ...measurements(), caption: text },
        ],
      },
    ],
  });
  expect(markdown.split('\n').filter((line) => line.endsWith(shown))).toEqual([
    shown,
    `- ${shown}`,
    shown,
    `> ${shown}`,
    shown,
  ]);
});

it('points to images whose names hold characters that end an address', () => {
  const text = renderMarkdown(sampleReport(), { plotPath: () => 'run #1 (a)?/50%) b.svg' });
  expect(text).toContain('](run%20%231%20%28a%29%3f/50%25%29%20b.svg)');
});
