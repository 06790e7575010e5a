import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import {
  renderCsv,
  renderHtml,
  renderJson,
  renderLatex,
  renderMarkdown,
  renderPng,
  renderSvg,
  renderTypst,
  allocationTable,
  isPicture,
  rooflineTable,
  timelineTable,
  type Block,
  type Report,
  type Table,
} from '@roofline/reports';
import { checkArgument } from '../check-argument.ts';
import { UsageError } from '../errors.ts';
import { makeWritable } from '../records/results-folder.ts';

const tableRenderers = {
  md: renderMarkdown,
  tex: renderLatex,
  typ: renderTypst,
  csv: renderCsv,
  json: renderJson,
} as const;

const writeOptions = z.strictObject({
  png: z.boolean().optional(),
  refreshSeconds: z.number().positive().optional(),
});

/** The files of a report. */
export interface WrittenReport {
  /** The page with everything inside. */
  readonly html: string;
  /** All files, absolute. */
  readonly files: readonly string[];
}

/**
 * Writes `report.html`, `report.md`, `tables/ID.{md,tex,typ,csv,json}` and `plots/ID.svg` (with `png`, also
 * `plots/ID.png`) into `folder`; with `refreshSeconds` the page reloads itself that often. Throws UsageError when it cannot be written, and a ReportError for
 * what is not a report.
 */
export async function writeReport(
  report: Report,
  folder: string,
  options: { png?: boolean; refreshSeconds?: number } = {},
): Promise<WrittenReport> {
  checkArgument('writeReport', 'folder', folder, z.string());
  checkArgument('writeReport', 'options', options, writeOptions);
  const { png = false, refreshSeconds } = options;
  // Refuses what is not a report, before anything is written.
  const page = renderHtml(report, refreshSeconds === undefined ? {} : { refreshSeconds });
  makeWritable(folder);
  for (const name of ['tables', 'plots']) {
    const path = join(folder, name);
    inFreePlace(path, () => mkdirSync(path, { recursive: true }));
  }
  const files: string[] = [];
  const write = (name: string, content: string | Uint8Array) => {
    const path = resolve(folder, name);
    inFreePlace(path, () => writeFileSync(path, content));
    files.push(path);
    return path;
  };

  const blocks = [report.chart ?? [], ...report.sections.map((section) => section.blocks)].flat();
  const html = write('report.html', page);
  write('report.md', renderMarkdown(report, { plotPath: ({ id }) => `plots/${id}.svg` }));
  for (const table of blocks.flatMap(tablesOf)) {
    for (const [extension, render] of Object.entries(tableRenderers)) {
      write(`tables/${table.id}.${extension}`, render(table));
    }
  }
  for (const plot of blocks.filter((block) => isPicture(block))) {
    write(`plots/${plot.id}.svg`, renderSvg(plot));
    if (png) write(`plots/${plot.id}.png`, await renderPng(plot));
  }
  return { html, files };
}

/** A file where a folder is to be, or a folder where a file is. */
const TAKEN = new Set(['EEXIST', 'EISDIR', 'ENOTDIR']);

/** Throws a UsageError where something of another kind is at `path`. */
export function inFreePlace(path: string, write: () => void): void {
  try {
    write();
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (!TAKEN.has(code ?? '')) throw cause;
    throw new UsageError(`Cannot write ${path} (${code}): remove what is there, or take another --out.`, {
      cause,
    });
  }
}

/** A chart that moves is written as the table of its numbers. */
function tablesOf(block: Block): Table[] {
  if (block.kind === 'table') return [block];
  if (block.kind === 'timeline') return [timelineTable(block)];
  if (block.kind === 'roofline') return [rooflineTable(block)];
  return block.kind === 'allocations' ? [allocationTable(block)] : [];
}
