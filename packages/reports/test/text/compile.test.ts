import { execFileSync } from 'node:child_process';
import { accessSync, constants, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { NodeCompiler } from '@myriaddreamin/typst-ts-node-compiler';
import { afterAll, describe, expect, it } from 'vitest';
import { renderLatex, renderTypst } from '../../src/index.ts';
import type { Table } from '../../src/index.ts';
import { HOSTILE, measurements } from '../fixtures.ts';

const folder = mkdtempSync(join(tmpdir(), 'roofline-compile-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** The first of these programs that is installed. */
function findProgram(names: readonly string[]): string | undefined {
  const paths = (process.env['PATH'] ?? '').split(delimiter);
  return names.flatMap((name) => paths.map((path) => join(path, name))).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** All that the escapes know, in cells, heading and caption. */
function hostileTable(): Table {
  const table = measurements();
  const symbols = '± × · − ∞ ≤ ≥ ≈ → ² ³ µ … – —';
  table.caption = `50% of {it} & #1_x^2 ~ \\ ${symbols}`;
  table.columns[0]!.label = 'Size_$ #[1]';
  // In parts, so that no cell is too long for paper.
  for (const size of HOSTILE.match(/.{1,30}/g)!) table.rows.push({ size, timeMs: 1 });
  table.rows.push({ size: `[a] *b* ${symbols}`, timeMs: 1, peakBytes: 5 }, { size: '#eval("x")', timeMs: 2 });
  return table;
}

it('leaves LaTeX only ASCII and matching braces', () => {
  const text = renderLatex(hostileTable());
  expect(text).toMatch(/^[\n -~]*$/);
  const braces = text.replace(/\\[{}]/g, '').match(/[{}]/g)!;
  let depth = 0;
  for (const brace of braces) {
    depth += brace === '{' ? 1 : -1;
    expect(depth).toBeGreaterThanOrEqual(0);
  }
  expect(depth).toBe(0);
});

const tex = findProgram(['pdflatex', 'xelatex', 'lualatex']);

describe.skipIf(!tex)('LaTeX (skipped where no TeX is installed)', () => {
  it('compiles with booktabs and graphicx', () => {
    const preamble = '\\documentclass{article}\n\\usepackage{booktabs,graphicx}\n';
    writeFileSync(
      join(folder, 'table.tex'),
      `${preamble}\\begin{document}\n${renderLatex(hostileTable())}\\end{document}\n`,
    );
    const options = ['-interaction=nonstopmode', '-halt-on-error', '-no-shell-escape', 'table.tex'];
    execFileSync(tex!, options, { cwd: folder, stdio: 'pipe' });
    expect(readFileSync(join(folder, 'table.log'), 'latin1')).not.toMatch(/^Overfull/m);
    expect(statSync(join(folder, 'table.pdf')).size).toBeGreaterThan(1000);
  });
});

describe('Typst', () => {
  const compiler = NodeCompiler.create();

  it('compiles', () => {
    const pdf = compiler.pdf({ mainFileContent: renderTypst(hostileTable()) })!;
    expect(pdf.subarray(0, 5).toString()).toBe('%PDF-');
    expect(pdf.length).toBeGreaterThan(1000);
  });

  it('would not compile with an unescaped cell', () => {
    const broken = renderTypst(hostileTable()).replace('\\"x\\"', '"x"');
    expect(() => compiler.pdf({ mainFileContent: broken })).toThrow(
      expect.objectContaining({ code: expect.stringContaining('expected comma') }),
    );
  });
});
