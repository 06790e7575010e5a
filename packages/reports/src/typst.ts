import type { Table } from './model.ts';
import { alignments, escaper, headings, writeTable } from './text-form.ts';
import type { Escapes, TextForm } from './text-form.ts';

/** Cells are string literals, not markup, so that nothing in them means anything to Typst but these. */
export const TYPST_ESCAPES: Escapes = {
  '\\': '\\\\',
  '"': '\\"',
  '\r\n': '\\n',
  '\n': '\\n',
  '\r': '\\n',
  '\t': '\\t',
};

const escape = escaper(TYPST_ESCAPES);

export function typstForm(table: Table): TextForm {
  const caption = table.caption ? `${table.title}. ${table.caption}` : table.title;
  const heads = headings(table, escape).map((heading) => `strong("${heading}")`);
  return {
    begin: [
      '#figure(',
      `  caption: "${escape(caption)}",`,
      '  table(',
      `    columns: ${table.columns.length},`,
      `    align: (${alignments(table, { left: 'left', right: 'right', center: 'center' }).join(', ')},),`,
      '    stroke: none,',
      '    table.hline(),',
      `    table.header(${heads.join(', ')}),`,
      '    table.hline(stroke: 0.5pt),',
      '',
    ].join('\n'),
    rowStart: '    "',
    cellSeparator: '", "',
    rowEnd: '",\n',
    end: ['    table.hline(),', '  ),', `) <tab:${table.id.replace(/[^\w:.-]/g, '-')}>`, ''].join('\n'),
  };
}

/** A Typst `figure` that holds the table, ruled as booktabs does. */
export function renderTypst(table: Table): string {
  return writeTable(typstForm(table), escape, table);
}
