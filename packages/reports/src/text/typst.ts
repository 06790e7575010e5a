import { checkTable } from '../check/check-model.ts';
import type { Table } from '../model.ts';
import { alignments, escaper, headings, writeTable } from './text-form.ts';
import type { Escapes, TextForm } from './text-form.ts';
import { withColumnUnits } from '../table/column-units.ts';
import { isWide, longestCell, typesetTable } from './typeset.ts';

/** Cells are string literals, not markup, so that nothing in them means anything to Typst but these. */
const TYPST_ESCAPES: Escapes = {
  '\\': '\\\\',
  '"': '\\"',
  '\r\n': '\\n',
  '\n': '\\n',
  '\r': '\\n',
  '\t': '\\t',
};

const escape = escaper(TYPST_ESCAPES);

/** Shrinks the table to the width of the text, if it is wider. */
const FIT = ['  kind: table,', '  layout(size => {', '    let body = table('];
const FIT_END = [
  '    )',
  '    let width = measure(body).width',
  '    let part = calc.min(1, size.width / width) * 100%',
  '    scale(x: part, y: part, reflow: true, block(width: width, body))',
  '  }),',
];

function typstForm(table: Table): TextForm {
  const caption = table.caption ? `${table.title}. ${table.caption}` : table.title;
  const heads = headings(table, escape).map((heading) => `strong("${heading}")`);
  const fit = isWide(table);
  return {
    begin: [
      '#figure(',
      `  caption: "${escape(caption)}",`,
      ...(fit ? FIT : ['  table(']),
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
    end: [
      '    table.hline(),',
      ...(fit ? FIT_END : ['  ),']),
      `) <tab:${table.id.replace(/[^\w:.-]/g, '-')}>`,
      '',
    ].join('\n'),
    longestCell: longestCell(table),
  };
}

/**
 * A Typst `figure` that holds the table, ruled as booktabs does, shrunk where it is wider than the text. On paper long
 * names are shortened and long tables cut; the other forms have all of it.
 */
export function renderTypst(table: Table): string {
  checkTable('renderTypst', table);
  const typeset = typesetTable(withColumnUnits(table));
  return writeTable(typstForm(typeset), escape, typeset);
}
