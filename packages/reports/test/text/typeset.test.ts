import { expect, it } from 'vitest';
import { renderLatex, renderMarkdown, renderTypst } from '../../src/index.ts';
import type { Table } from '../../src/index.ts';

const LONG = 'sm80_xmma_gemm_f32f32_nn_n_tilesize128x32x8_stage3_warpsize2x2x1_ffma_cublas';

function kernels(count: number): Table {
  return {
    kind: 'table',
    id: 'kernels',
    title: 'Kernels',
    caption: 'Of one step.',
    columns: [
      { key: 'style', label: 'Style', kind: 'text' },
      { key: 'timeNs', label: 'Total Time (ns)', kind: 'number' },
      { key: 'instances', label: 'Instances', kind: 'number' },
      { key: 'name', label: 'Name', kind: 'text' },
    ],
    rows: Array.from({ length: count }, (_, index) => ({
      style: 'PushPop',
      timeNs: 100 - index,
      instances: 5,
      name: index === 0 ? LONG : `kernel ${index}`,
    })),
  };
}

it.each([renderLatex, renderTypst])('shortens long names, and keeps both ends (%o)', (render) => {
  const text = render(kernels(2)).replaceAll('\\', '');
  expect(text).toContain('sm80_xmma_gemm_f32f32_nn_n_til');
  expect(text).toContain('fma_cublas');
  expect(text).not.toContain(LONG);
});

it.each([renderLatex, renderTypst])('keeps more of names that would read alike (%o)', (render) => {
  const projections = ['q', 'k'].map((letter) => `${'layers · '.repeat(20)}${letter}_proj.weight · matmul`);
  const table = kernels(2);
  table.rows = projections.map((name, index) => ({ ...table.rows[index], name }));
  const text = render(table).replaceAll('\\', '');
  expect(text).toContain('q_proj');
  expect(text).toContain('k_proj');
  expect(text).toMatch(/…|ldots/);
});

it('ends a caption by a full stop before what it adds', () => {
  const table = { ...kernels(41), caption: 'Of one step' };
  expect(renderTypst(table)).toContain(
    'caption: "Kernels. Of one step. Style: PushPop. The first 40 of 41 rows.",',
  );
});

it('says once what all rows of a wide table share', () => {
  expect(renderTypst(kernels(2))).toContain('caption: "Kernels. Of one step. Style: PushPop.",');
  expect(renderTypst(kernels(2))).not.toContain('strong("Style")');
  const narrow = kernels(2);
  narrow.rows.shift();
  narrow.rows.push({ ...narrow.rows[0] });
  expect(renderTypst(narrow)).toContain('strong("Style")');
});

it('cuts long tables and says so; Markdown has all of them', () => {
  const text = renderLatex(kernels(41));
  expect(text).toContain('The first 40 of 41 rows.');
  expect(text).toContain('kernel 39 ');
  expect(text).not.toContain('kernel 40 ');
  expect(renderMarkdown(kernels(41))).toContain('| kernel 40 ');
});

it.each([renderLatex, renderTypst])(
  'says that rows are left out where some are, and not of a whole page (%o)',
  (render) => {
    expect(render(kernels(40))).not.toContain('The first');
    expect(render(kernels(40)).match(/kernel \d+/g)).toHaveLength(39);
    expect(render(kernels(41))).toContain('The first 40 of 41 rows.');
  },
);
