import { checkModel } from '../check/check-model.ts';
import type { Report, Table } from '../model.ts';
import { checkDocumentOptions, writeDocument, type DocumentForm, type DocumentOptions } from './document.ts';
import { alignments, escaper, headings, writeTable } from './text-form.ts';
import type { Escapes, TextForm } from './text-form.ts';
import { withColumnUnits } from '../table/column-units.ts';
import { isWide, longestCell, typesetTable } from './typeset.ts';

const greek = {
  ...{ α: 'alpha', β: 'beta', γ: 'gamma', δ: 'delta', ε: 'varepsilon', ζ: 'zeta', η: 'eta', θ: 'theta' },
  ...{ ι: 'iota', κ: 'kappa', λ: 'lambda', ν: 'nu', ξ: 'xi', π: 'pi', ρ: 'rho', σ: 'sigma', τ: 'tau' },
  ...{ υ: 'upsilon', φ: 'varphi', χ: 'chi', ψ: 'psi', ω: 'omega', Γ: 'Gamma', Δ: 'Delta', Θ: 'Theta' },
  ...{ Λ: 'Lambda', Ξ: 'Xi', Π: 'Pi', Σ: 'Sigma', Φ: 'Phi', Ψ: 'Psi', Ω: 'Omega' },
};

/** LaTeX's special characters, those beyond ASCII that `format.ts` writes, and what formulas are written with. */
export const LATEX_ESCAPES: Escapes = {
  '\\': '\\textbackslash{}',
  '{': '\\{',
  '}': '\\}',
  $: '\\$',
  '&': '\\&',
  '#': '\\#',
  '%': '\\%',
  _: '\\_',
  '~': '\\textasciitilde{}',
  '^': '\\textasciicircum{}',
  '<': '\\textless{}',
  '>': '\\textgreater{}',
  '|': '\\textbar{}',
  '"': '{\\char34}',
  '`': '\\textasciigrave{}',
  // A row that begins with one of these would be read as an argument of the `\\` before it.
  '[': '{[}',
  ']': '{]}',
  '*': '{*}',
  // No ligatures: `--flag` keeps both hyphens, and an empty text between apostrophes does not become a quotation mark.
  '--': '{-}{-}',
  "''": "{'}{'}",
  '–': '--',
  '—': '---',
  '±': '$\\pm$',
  '×': '$\\times$',
  '·': '$\\cdot$',
  '−': '$-$',
  '∞': '$\\infty$',
  '≤': '$\\le$',
  '≥': '$\\ge$',
  '≈': '$\\approx$',
  '→': '$\\to$',
  '←': '$\\gets$',
  '≠': '$\\ne$',
  '√': '$\\surd$',
  '∑': '$\\sum$',
  '∂': '$\\partial$',
  '‖': '$\\Vert$',
  '°': '$^\\circ$',
  '²': '$^2$',
  '³': '$^3$',
  µ: '$\\mu$',
  μ: '$\\mu$',
  ...Object.fromEntries(Object.entries(greek).map(([letter, name]) => [letter, `$\\${name}$`])),
  '…': '\\ldots{}',
  // What `printable` leaves in place of codes: pdflatex stops at it.
  '\ufffd': '?',
  '\u00a0': '~',
  '\r\n': ' ',
  '\n': ' ',
  '\r': ' ',
};

const escape = escaper(LATEX_ESCAPES);

/** Shrinks what is wider than a line, and leaves the rest as it is. */
const FIT = '\\resizebox{\\ifdim\\width>\\linewidth \\linewidth\\else \\width\\fi}{!}{%';

export function latexForm(table: Table): TextForm {
  const caption = table.caption ? `${table.title}. ${table.caption}` : table.title;
  const columns = alignments(table, { left: 'l', right: 'r', center: 'c' }).join('');
  const fit = isWide(table);
  return {
    begin: [
      '\\begin{table}[htbp]',
      '  \\centering',
      `  \\caption{${escape(caption)}}`,
      `  \\label{tab:${labelOf(table.id)}}`,
      ...(fit ? ['  \\setlength{\\tabcolsep}{4pt}', `  ${FIT}`] : []),
      `  \\begin{tabular}{${columns}}`,
      '    \\toprule',
      `    ${headings(table, escape).join(' & ')} \\\\`,
      '    \\midrule',
      '',
    ].join('\n'),
    rowStart: '    ',
    cellSeparator: ' & ',
    rowEnd: ' \\\\\n',
    end: ['    \\bottomrule', `  \\end{tabular}${fit ? '}' : ''}`, '\\end{table}', ''].join('\n'),
    longestCell: longestCell(table),
  };
}

/** What a document of a report needs of LaTeX: all of it is in the usual distributions. */
const PREAMBLE = [
  '\\documentclass[11pt]{article}',
  '\\usepackage[utf8]{inputenc}',
  '\\usepackage[T1]{fontenc}',
  '\\usepackage[margin=2.5cm]{geometry}',
  '\\usepackage{booktabs,graphicx,hyperref}',
  '% Text and what it speaks of stay near each other.',
  '\\usepackage[section]{placeins}',
];

const documentForm: DocumentForm = {
  prose: {
    text: escape,
    code: (code) => `\\texttt{${escape(code)}}`,
    bold: (content) => `\\textbf{${content}}`,
    link: (address, content) => `\\href{${address.replace(/[%#\\{}]/g, '\\$&')}}{${content}}`,
  },
  begin: ({ title, subtitle, createdAt }, write) =>
    [
      ...PREAMBLE,
      `\\title{${escape(title)}}`,
      `\\author{${subtitle === undefined ? '' : write(subtitle)}}`,
      `\\date{${escape(createdAt)}}`,
      '\\begin{document}',
      '\\maketitle',
      '',
    ].join('\n'),
  heading: (level, title, id) =>
    `\\${level === 1 ? 'section' : 'subsection'}{${escape(title)}}\\label{sec:${labelOf(id)}}\n`,
  paragraph: (content) => `${content}\n`,
  bullets: (contents) =>
    ['\\begin{itemize}', ...contents.map((each) => `  \\item ${each}`), '\\end{itemize}', ''].join('\n'),
  table: tableEnvironment,
  figure: (path, { id }, caption) =>
    [
      '\\begin{figure}[htbp]',
      '  \\centering',
      `  \\includegraphics[width=\\linewidth]{${path}}`,
      `  \\caption{${caption}}`,
      `  \\label{fig:${labelOf(id)}}`,
      '\\end{figure}',
      '',
    ].join('\n'),
  end: '\\end{document}\n',
};

function labelOf(id: string): string {
  return id.replace(/[^\w:.-]/g, '-');
}

function tableEnvironment(table: Table): string {
  const typeset = typesetTable(withColumnUnits(table));
  return writeTable(latexForm(typeset), escape, typeset);
}

/**
 * A `table` environment in the style of the booktabs package, shrunk by graphicx where it is wider than the text; of a report a
 * whole document, with plots as images that `plotPath` names (PNG or PDF), or as tables. On paper long names are shortened and
 * long tables cut; the other forms have all of it.
 *
 * @throws ReportError for what is neither a table nor a report.
 */
export function renderLatex(model: Report | Table, options: DocumentOptions = {}): string {
  checkModel('renderLatex', model);
  checkDocumentOptions('renderLatex', options);
  return 'sections' in model
    ? writeDocument('renderLatex', model, documentForm, options)
    : tableEnvironment(model);
}
