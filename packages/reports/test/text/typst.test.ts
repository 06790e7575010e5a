import { expect, it } from 'vitest';
import { renderTypst } from '../../src/index.ts';
import { measurements } from '../fixtures.ts';

it('writes a figure that holds the table', () => {
  const text = renderTypst(measurements());
  expect(text).toContain('caption: "Steps & more. Batch 4, 100% measured",');
  expect(text).toContain('columns: 5,');
  expect(text).toContain('align: (left, right, right, right, right,),');
  expect(text).toContain('table.header(strong("Size"), strong("Time (ms)"), strong("Peak memory (GiB)"),');
  expect(text).toContain('    "small", "12.3 ± 0.4", "3.00", "0.58×", "50.0 %",\n');
  expect(text).toContain('    "huge", "OOM", "OOM", "OOM", "OOM",\n');
  expect(text.trimEnd().endsWith(') <tab:steps>')).toBe(true);
});

it('writes cells as string literals, in which only quotes and backslashes mean anything', () => {
  const table = measurements();
  table.rows = [{ size: '#evil \\ "q"\n$x$', timeMs: 1 }];
  expect(renderTypst(table)).toContain(String.raw`    "#evil \\ \"q\"\n$x$", `);
});
