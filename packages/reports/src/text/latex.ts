import { checkTable } from '../check/check-model.ts';
import type { Table } from '../model.ts';
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
  // No ligature: `--flag` keeps both hyphens.
  '--': '{-}{-}',
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
      `  \\label{tab:${table.id.replace(/[^\w:.-]/g, '-')}}`,
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

/**
 * A `table` environment in the style of the booktabs package, shrunk by graphicx where it is wider than the text. On
 * paper long names are shortened and long tables cut; the other forms have all of it.
 */
export function renderLatex(table: Table): string {
  checkTable('renderLatex', table);
  const typeset = typesetTable(withColumnUnits(table));
  return writeTable(latexForm(typeset), escape, typeset);
}
