import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NodeCompiler } from '@myriaddreamin/typst-ts-node-compiler';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readResults } from '../../src/records/results-folder.ts';
import { reportOfRecords } from '../../src/report/report-of-records.ts';
import { writeReport } from '../../src/report/write-report.ts';
import { profileRecord } from '../fixtures/profiles.ts';
import { outOfMemoryRecord, toyRecord } from '../fixtures/records.ts';

const published = fileURLToPath(new URL('../../../../docs/results', import.meta.url));
/** Of each benchmark, and of each kind of `precision` and `e2e`. */
const folders = [
  ...[
    'h200-peers',
    'h200-warmup',
    'h200-profile',
    'h200-memory',
    'h200-precision',
    'h200-speed',
    'h200-overhead',
  ],
  ...['h200-compile', 'h200-attention-compiled', 'h200-flash', 'h200x2-ddp-compiled', 'cpu-allreduce'],
];

/** A kernel of a GPU, whose name is longer than a line. */
const LONG_NAME =
  'sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x32x8_stage3_warpsize2x2x1_ffma_aligna4_cublas';

const tex = ['pdflatex', 'xelatex', 'lualatex'].find((program) => {
  try {
    execFileSync(program, ['--version'], { stdio: 'pipe' });
    return true;
  } catch {
    return false;
  }
});

/** The files of a report on results of every kind, some of them without memory. */
async function writeTables(root: string): Promise<readonly string[]> {
  const records = folders.flatMap((folder) => readResults(join(published, folder)).slice(0, 6));
  const onGpu = JSON.parse(JSON.stringify(profileRecord()).replaceAll('softmax_rows', LONG_NAME));
  const made = [toyRecord(), outOfMemoryRecord({ context: 32 }), onGpu];
  const report = await reportOfRecords([...records, ...made]);
  const { files } = await writeReport(report, join(root, 'report'));
  return files;
}

describe('the tables of all benchmarks', () => {
  const folder = mkdtempSync(join(tmpdir(), 'roofline-tables-'));
  let files: readonly string[];
  beforeAll(async () => {
    files = await writeTables(folder);
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('compile in Typst', () => {
    const compiler = NodeCompiler.create();
    const sources = files.filter((file) => file.endsWith('.typ'));
    expect(sources.length).toBeGreaterThan(15);
    const broken = sources.filter((source) => {
      const pdf = compiler.pdf({ mainFileContent: readFileSync(source, 'utf8') });
      return pdf?.subarray(0, 5).toString() !== '%PDF-';
    });
    expect(broken).toEqual([]);
  });

  it.skipIf(!tex)('compile in LaTeX, and fit its pages (skipped where no TeX is installed)', () => {
    const sources = files.filter((file) => file.endsWith('.tex'));
    const tables = sources.map((source) => `${readFileSync(source, 'utf8')}\\clearpage\n`);
    const preamble = '\\documentclass{article}\n\\usepackage{booktabs,graphicx}\n\\begin{document}\n';
    writeFileSync(join(folder, 'tables.tex'), `${preamble}${tables.join('')}\\end{document}\n`);
    const options = ['-interaction=nonstopmode', '-halt-on-error', '-no-shell-escape', 'tables.tex'];
    execFileSync(tex!, options, { cwd: folder, stdio: 'pipe' });
    const log = readFileSync(join(folder, 'tables.log'), 'latin1');
    expect(log).toContain(`(${sources.length} pages`);
    expect(log).not.toMatch(/^Overfull|Float too large/m);
  });
});
