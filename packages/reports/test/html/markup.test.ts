import { expect, it } from 'vitest';
import { jsonHtml, proseHtml } from '../../src/html/markup.ts';
import { escapeXml } from '../../src/text/xml.ts';

it('escapes text for elements and attributes', () => {
  expect(escapeXml(`<a b="c" d='e'>&`)).toBe('&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;');
});

it('reads code, bold and links, and nothing else', () => {
  expect(proseHtml('run `a < **b**` **now** [here](https://x.org/?a&b) [top](#top)')).toBe(
    'run <code>a &lt; **b**</code> <strong>now</strong> <a href="https://x.org/?a&amp;b">here</a> <a href="#top">top</a>',
  );
  expect(proseHtml('[x](javascript:alert(1)) <img src=y>')).toBe(
    '[x](javascript:alert(1)) &lt;img src=y&gt;',
  );
});

it('keeps a number and its unit on one line', () => {
  expect(proseHtml('**55.0 %** of 24.5 ms, 2 GiB of 3 months')).toBe(
    '<strong>55.0\u00a0%</strong> of 24.5\u00a0ms, 2\u00a0GiB of 3 months',
  );
});

it('embeds JSON that no script element can end in', () => {
  const value = { text: '</script><!-- <script>' };
  expect(jsonHtml(value)).not.toContain('<');
  expect(JSON.parse(jsonHtml(value))).toEqual(value);
});

it('reads code in bold and in links', () => {
  expect(proseHtml('**`a<b>` is 5 % faster**, see [`a`](#a)')).toBe(
    '<strong><code>a&lt;b&gt;</code> is 5\u00a0% faster</strong>, see <a href="#a"><code>a</code></a>',
  );
});

it('makes no link of an address with code in it', () => {
  expect(proseHtml('[a](#b`c`)')).toBe('[a](#b<code>c</code>)');
});
