import { NodeCompiler } from '@myriaddreamin/typst-ts-node-compiler';
import { expect, it } from 'vitest';
import { renderLatex, renderMarkdown, renderTypst, type Report } from '../../src/index.ts';
import { smallTimeline } from '../chart-fixtures.ts';
import { HOSTILE, measurements } from '../fixtures.ts';

const plot = {
  ...{ kind: 'plot' as const, id: 'times', title: 'Times', x: { label: 'Size' }, y: { label: 'Time' } },
  series: [{ name: 'ours', points: [{ x: 'small', y: 1 }] }],
};

const report = (text: string): Report => ({
  ...{ title: 'A study', subtitle: 'On **one** host', createdAt: '2026-01-02T03:04:05Z' },
  summary: ['`softmax` takes **62 %** ([more](https://example.org/a%20b#c), [below](#steps-section)).'],
  environment: [{ label: 'Node.js', value: 'v24' }],
  sections: [
    {
      ...{ id: 'steps-section', title: 'Steps', text: [text] },
      blocks: [measurements(), plot, smallTimeline(), { kind: 'note', text: 'A remark.' }],
    },
    { id: 'part', title: 'A part', level: 2, blocks: [] },
  ],
});

it('writes a report as a LaTeX document with figures where they are, and tables where they are not', () => {
  const drawn = renderLatex(report('50 % of #1'), {
    plotPath: ({ id, kind }) => (kind === 'timeline' ? null : `figures/${id}.png`),
  });
  expect(drawn).toContain('\\documentclass');
  expect(drawn).toContain('\\section{Steps}\\label{sec:steps-section}');
  expect(drawn).toContain('\\subsection{A part}');
  expect(drawn).toContain('\\texttt{softmax} takes \\textbf{62 \\%}');
  expect(drawn).toContain('(\\href{https://example.org/a\\%20b\\#c}{more}, below)');
  expect(drawn).toContain('50 \\% of \\#1');
  expect(drawn).toContain('\\includegraphics[width=\\linewidth]{figures/times.png}');
  expect(drawn).toContain('\\label{tab:step-timeline');
  expect(drawn.trimEnd().endsWith('\\end{document}')).toBe(true);
  expect(renderLatex(report(''))).not.toContain('includegraphics');
});

it('writes a report as a Typst document that compiles, whatever its texts hold', () => {
  const text = renderTypst(report(HOSTILE));
  expect(text).toContain('#heading(level: 1, "Steps") <sec:steps-section>');
  expect(text).toContain('#raw("softmax")#" takes "#strong[#"62 %"]');
  const compiler = NodeCompiler.create();
  const pdf = compiler.pdf({ mainFileContent: text })!;
  expect(pdf.subarray(0, 5).toString()).toBe('%PDF-');
  expect(renderTypst(report(''), { plotPath: ({ id }) => `${id}.svg` })).toContain(
    'image("times.svg", width: 100%)',
  );
});

it('writes the pictures over time as images in Markdown where there is a path', () => {
  const text = renderMarkdown(report(''), { plotPath: ({ id }) => `${id}.svg` });
  expect(text).toContain('![One step](step-timeline.svg)');
  expect(renderMarkdown(report(''), { plotPath: () => null })).not.toContain('![');
});
