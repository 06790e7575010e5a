import { checkModel } from '../check/check-model.ts';
import type { Report, Table } from '../model.ts';
import { checkDocumentOptions, writeDocument, type DocumentForm, type DocumentOptions } from './document.ts';
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
    end: ['    table.hline(),', ...(fit ? FIT_END : ['  ),']), `) <tab:${labelOf(table.id)}>`, ''].join('\n'),
    longestCell: longestCell(table),
  };
}

const literal = (text: string) => `#"${escape(text)}"`;

const documentForm: DocumentForm = {
  prose: {
    text: literal,
    code: (code) => `#raw("${escape(code)}")`,
    bold: (content) => `#strong[${content}]`,
    link: (address, content) => `#link("${escape(address)}")[${content}]`,
  },
  begin: ({ title, subtitle, createdAt }, write) =>
    [
      `#set document(title: "${escape(title)}")`,
      '#set page(numbering: "1")',
      '#set heading(numbering: "1.1")',
      '// A long table goes on over the page.',
      '#show figure.where(kind: table): set block(breakable: true)',
      '',
      `#align(center, text(17pt, strong("${escape(title)}")))`,
      ...(subtitle === undefined ? [] : [`#align(center)[${write(subtitle)}]`]),
      `#align(center, "${escape(createdAt)}")`,
      '',
    ].join('\n'),
  heading: (level, title, id) => `#heading(level: ${level}, "${escape(title)}") <sec:${labelOf(id)}>\n`,
  paragraph: (content) => `#par[${content}]\n`,
  bullets: (contents) => `#list(${contents.map((each) => `[${each}]`).join(', ')},)\n`,
  table: tableFigure,
  figure: (path, { id }, caption) =>
    `#figure(image("${escape(path)}", width: 100%), caption: [${caption}]) <fig:${labelOf(id)}>\n`,
  end: '',
};

function labelOf(id: string): string {
  return id.replace(/[^\w:.-]/g, '-');
}

function tableFigure(table: Table): string {
  const typeset = typesetTable(withColumnUnits(table));
  return writeTable(typstForm(typeset), escape, typeset);
}

/**
 * A Typst `figure` that holds the table, ruled as booktabs does, shrunk where it is wider than the text; of a report a whole
 * document, with plots as images that `plotPath` names, or as tables. On paper long names are shortened and long tables cut; the
 * other forms have all of it.
 *
 * @throws ReportError for what is neither a table nor a report.
 */
export function renderTypst(model: Report | Table, options: DocumentOptions = {}): string {
  checkModel('renderTypst', model);
  checkDocumentOptions('renderTypst', options);
  return 'sections' in model
    ? writeDocument('renderTypst', model, documentForm, options)
    : tableFigure(model);
}
