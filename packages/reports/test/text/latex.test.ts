import { expect, it } from 'vitest';
import { type Table, renderLatex } from '../../src/index.ts';
import { HOSTILE, measurements } from '../fixtures.ts';

/** One that fits the text of a page. */
function narrowTable(): Table {
  const table = measurements();
  table.rows.splice(1, 1);
  table.columns[2]!.label = 'Peak';
  return table;
}

it('writes a booktabs table', () => {
  const table = narrowTable();
  expect(renderLatex(table)).toBe(String.raw`\begin{table}[htbp]
  \centering
  \caption{Steps \& more. Batch 4, 100\% measured}
  \label{tab:steps}
  \begin{tabular}{lrrrr}
    \toprule
    Size & Time (ms) & Peak (GiB) & Ours / PyTorch & Share of the roof \\
    \midrule
    small & 12.3 $\pm$ 0.4 & 3.00 & 0.58$\times$ & 50.0 \% \\
    huge & OOM & OOM & OOM & OOM \\
    slow & timeout & timeout & timeout & timeout \\
    \bottomrule
  \end{tabular}
\end{table}
`);
});

it('escapes every special character', () => {
  const table = measurements();
  // In parts, so that no cell is too long for paper.
  const cells = (HOSTILE + ' –').match(/.{1,30}/g)!;
  table.rows = cells.map((size) => ({ size, timeMs: 1500, timeStdMs: 13 }));
  const written = renderLatex(table).match(/^ {4}.*(?= & 1500)/gm)!;
  expect(written.map((row) => row.slice(4)).join('')).toBe(
    String.raw`a\textbar{}b \& c\_d \#1 \$x\$ 50\% \textasciitilde{}\{y\}\textasciicircum{} \textbackslash{}n ` +
      String.raw`{\char34}q{\char34} \textless{}script\textgreater{}alert(1)\textless{}/script\textgreater{} ` +
      String.raw`{[}z{]} {*}w{*} \textasciigrave{}v\textasciigrave{} {-}{-}flag --`,
  );
});

it('shrinks a table that is wider than the text, and no other', () => {
  const table = narrowTable();
  expect(renderLatex(table)).not.toContain('resizebox');
  table.rows.push({ size: 'a name that is longer than the text is wide'.repeat(2), timeMs: 1 });
  expect(renderLatex(table)).toMatch(/\\resizebox\{.*\n {2}\\begin\{tabular\}[^]*\\end\{tabular\}\}\n/);
});

it('keeps a newline in a cell from ending the row', () => {
  const table = measurements();
  table.rows = [{ size: 'two\nlines', timeMs: 1 }];
  expect(renderLatex(table)).toContain('    two lines & ');
});

it('writes Greek letters and signs of formulas by commands: pdflatex knows no other', () => {
  const table = measurements();
  table.columns[0]!.label = 'α, 1/β, Δσ, ‖g‖ ≠ √ε';
  const text = renderLatex(table);
  expect(text).toContain(
    String.raw`$\alpha$, 1/$\beta$, $\Delta$$\sigma$, $\Vert$g$\Vert$ $\ne$ $\surd$$\varepsilon$ &`,
  );
});

it('writes what does not print as a character that pdflatex knows, and no ligature', () => {
  const table = measurements();
  table.rows = [{ size: "a\u001bb\u202ec\ufffd, not ''", timeMs: 1 }];
  expect(renderLatex(table)).toContain("    a?b?c?, not {'}{'} & ");
});
