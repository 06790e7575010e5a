// Makes the reports and pictures under docs/ anew from the records there: `npm run results`.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readResults, reportOfRecords, writeReport } from '../packages/bench-harness/src/index.ts';
import { renderSvg, type Plot, type RooflinePlot } from '../packages/reports/src/index.ts';

const docs = resolve(import.meta.dirname, '../docs');

/** The reports, and the folders of the records that each is of. */
export const reports: Readonly<Record<string, readonly string[]>> = {
  h200: ['h200-float32', 'h200-bfloat16', 'h200-large', 'h200-warmup', 'h200-precision', 'h200-speed'],
  'h200-instruments': ['h200-profile', 'h200-memory', 'h200-overhead'],
  'cpu-float32': ['cpu-float32'],
};

/** The pictures of the READMEs: the chart that a report of these records begins with, and a title of its own. */
const charts: Readonly<Record<string, { readonly of: readonly string[]; readonly title: string }>> = {
  'beside-pytorch': {
    of: ['h200-float32', 'h200-bfloat16'],
    title: 'A training step on one H200, Roofline beside eager PyTorch 2.11',
  },
  roofline: {
    of: ['h200-profile'],
    title: 'Every kernel of a step of 2.7b in bfloat16 on one H200, under its roof',
  },
};

/** The pictures by their paths under docs/, as the records have them. */
export async function pictures(): Promise<Map<string, string>> {
  const drawn = new Map<string, string>();
  for (const [name, { of, title }] of Object.entries(charts)) {
    const { chart } = await reportOf(of);
    const plot: Plot | RooflinePlot = { ...chart!, title };
    for (const theme of ['light', 'dark'] as const) {
      drawn.set(`pictures/${name}-${theme}.svg`, renderSvg(plot, { theme, width: 860, height: 420 }));
    }
  }
  return drawn;
}

function reportOf(folders: readonly string[]) {
  return reportOfRecords(folders.flatMap((folder) => readResults(join(docs, 'results', folder))));
}

async function main(): Promise<void> {
  for (const [name, folders] of Object.entries(reports)) {
    const folder = join(docs, 'results', name);
    for (const old of ['plots', 'tables']) rmSync(join(folder, old), { recursive: true, force: true });
    const { files } = await writeReport(await reportOf(folders), folder);
    // The tables stand in the report, and whoever wants them alone has the records.
    rmSync(join(folder, 'tables'), { recursive: true });
    console.log(`docs/results/${name}: ${files.length} files`);
  }
  mkdirSync(join(docs, 'pictures'), { recursive: true });
  for (const [path, svg] of await pictures()) writeFileSync(join(docs, path), svg);
}

if (import.meta.main) await main();
