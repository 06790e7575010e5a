// Rebuilds what `roofline plan` knows of machines, and what docs/ shows of the records there: the findings and tables of each report, and the pictures of README and
// handbook, and the tables of README and benchmarks. `npm run results`; the pages with all charts are part of the site that `npm run docs` builds.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readResults, reportOfRecords } from '../packages/bench-harness/src/index.ts';
import { asAuthored } from '../packages/bench-harness/src/report/authored/authored-report.ts';
import {
  isDrawing,
  renderMarkdown,
  renderSvg,
  type Block,
  type Drawing,
  type Report,
} from '../packages/reports/src/index.ts';
import { machineNames } from '../packages/bench-harness/src/plan/kinds.ts';
import { machinePath } from '../packages/bench-harness/src/plan/machine.ts';
import { allReducePicture } from './all-reduce-picture.ts';
import { leadChart, pagesWithTables, withTables } from './benchmark-tables.ts';
import { committedPlan, machineOfFolders, machineText, plans } from './plans.ts';

const docs = resolve(import.meta.dirname, '../docs');

/** The reports, and the folders of the records that each is of. */
export const reports: Readonly<Record<string, readonly string[]>> = {
  h200: ['h200-float32', 'h200-bfloat16', 'h200-large', 'h200-warmup', 'h200-precision', 'h200-speed'],
  'h200-instruments': ['h200-profile', 'h200-memory', 'h200-overhead'],
  'h200-attention': [
    ...['h200-flash', 'h200-flash-leaderboard', 'h200-flash-float32'],
    ...['h200-attention-float32', 'h200-attention-bfloat16'],
    ...['h200-steps-flash', 'h200-steps-plain', 'h200-profile-flash'],
  ],
  'h200-compiled': [
    'h200-compiled-steps',
    'h200-compiled-2.7b',
    ...['h200-compiled-steps-float32', 'h200-compiled-2.7b-float32', 'h200-compiled-peer'],
    ...['h200-profile-compiled', 'h200-compiled-float32', 'h200-compiled-float32-2.7b'],
    ...['h200-attention-compiled', 'h200-compile'],
  ],
  'h200-peers': ['h200-peers'],
  'h200-units': ['h200-units'],
  'h200-8b': ['h200-8b'],
  'h200x2-collectives': ['h200x2-allreduce', 'h200x2-allgather-reducescatter', 'h200x2-ddp'],
  'h200x2-models': ['h200x2-8b', 'h200x2-context', 'h200x2-fsdp', 'h200x2-tensor', 'h200x2-ddp-compiled'],
  'cpu-float32': ['cpu-float32'],
  'cpu-compiled': ['cpu-compiled'],
  'cpu-collectives': ['cpu-allreduce', 'cpu-ddp'],
};

/** A plot of the report of these records, and a title of its own. */
interface Picture {
  readonly of: readonly string[];
  readonly plot: string;
  readonly title: string;
}

/** Those of the READMEs that are made of records. */
const charts: Readonly<Record<string, Picture>> = {
  roofline: {
    of: ['h200-profile'],
    plot: 'roofline-2.7b-c256-b4-train-step-bfloat16',
    title: 'The kernels of a step of 2.7b in bfloat16 on one H200, under its roof',
  },
  'host-time': {
    of: ['h200-overhead'],
    plot: 'host-time',
    title: 'What an eager op costs the host of an H200',
  },
  'attention-throughput': {
    of: ['h200-flash'],
    plot: 'both-beside-pytorch',
    title: "Attention forward and backward vs PyTorch's fastest, bfloat16 on one H200",
  },
  'loss-curves': {
    of: ['h200-precision'],
    plot: 'loss-curves',
    title: 'Loss of a training with AdamW in each precision',
  },
  'speed-ups': {
    of: ['h200-speed'],
    plot: 'speed-ups',
    title: 'What autocast gains over float32, by model size, on one H200',
  },
  'memory-peaks': {
    of: ['h200-memory'],
    plot: 'peak-by-context',
    title: 'Peak memory by context on one H200',
  },
  'attention-times': {
    of: ['h200-attention-float32'],
    plot: 'time-float32-b8-d64',
    title: 'Attention by sequence: float32, batch 8, d 64, on one H200',
  },
  'flash-forward': {
    of: ['h200-flash'],
    plot: 'forward-beside-pytorch',
    title: "Attention forward vs PyTorch's fastest, bfloat16 on one H200",
  },
  'bus-bandwidth': {
    of: ['h200x2-allreduce'],
    plot: 'busbw-by-size-allreduce-float32-2',
    title: 'Bus bandwidth of an all-reduce between two H200s, by NCCL',
  },
  'data-parallel': {
    of: ['h200x2-ddp'],
    plot: 'ddp-times',
    title: 'A data-parallel step of xl on two H200s, and its communication',
  },
  'step-phases': {
    of: ['h200-bfloat16'],
    plot: 'phases-of-a-train-step',
    title: 'Where the time of a train step goes, by model size, bfloat16 on one H200',
  },
};

/** The pictures by their paths under docs/, as the records have them. */
export async function pictures(): Promise<Map<string, string>> {
  const drawn = new Map<string, string>();
  const known = new Map<string, Report>();
  for (const [name, { of, plot: id, title }] of Object.entries(charts)) {
    const report = known.get(of.join()) ?? (await reportOf(of));
    known.set(of.join(), report);
    const plot = { ...plotOf(report, id), title };
    for (const theme of ['light', 'dark'] as const) {
      drawn.set(`pictures/${name}-${theme}.svg`, renderSvg(plot, { theme, width: 860, height: 420 }));
    }
  }
  for (const theme of ['light', 'dark'] as const) {
    drawn.set(`pictures/all-reduce-${theme}.svg`, allReducePicture(theme));
    drawn.set(`pictures/compiled-steps-${theme}.svg`, renderSvg(leadChart(), { theme, width: 832 }));
  }
  return drawn;
}

function plotOf({ sections }: Report, id: string): Drawing {
  const plots = sections.flatMap(({ blocks }) => blocks).filter((block) => isDrawing(block));
  const found = plots.find((plot) => plot.id === id);
  if (!found) throw new Error(`no plot ${id} among ${plots.map((plot) => plot.id).join(', ')}`);
  return found;
}

/** The report of the records in these folders under docs/results. */
export function reportOf(folders: readonly string[]) {
  return reportOfRecords(folders.flatMap((folder) => readResults(join(docs, 'results', folder))));
}

/** The folders of all pages: those of records, and those of plans. */
export const pageNames = [...Object.keys(reports), ...Object.keys(plans)];

/** One of `pageNames`, as the `report.yaml` next to its page says it where there is one. */
export async function committedReport(name: string): Promise<Report> {
  const report = name in plans ? committedPlan(name) : await reportOf(reports[name]!);
  return asAuthored(report, [join(docs, 'results', name)]);
}

/** What a repository shows of a report: its findings and tables. The charts' files would be derived ones. */
export function reportPage(report: Report): string {
  const { chart: _, sections, ...rest } = report;
  const isText = ({ kind }: Block) => kind === 'table' || kind === 'note';
  const inText = sections.map((section) => ({ ...section, blocks: section.blocks.filter(isText) }));
  return renderMarkdown({
    ...rest,
    sections: inText.filter(({ blocks, text }) => blocks.length > 0 || text !== undefined),
  });
}

async function main(): Promise<void> {
  for (const name of machineNames) writeFileSync(machinePath(name), machineText(machineOfFolders(name)));
  for (const name of pageNames) {
    const path = join('results', name, 'report.md');
    mkdirSync(join(docs, 'results', name), { recursive: true });
    writeFileSync(join(docs, path), reportPage(await committedReport(name)));
    console.log(`docs/${path}`);
  }
  mkdirSync(join(docs, 'pictures'), { recursive: true });
  for (const [path, svg] of await pictures()) writeFileSync(join(docs, path), svg);
  for (const page of pagesWithTables) {
    const path = join(docs, '..', page);
    writeFileSync(path, withTables(readFileSync(path, 'utf8')));
  }
}

if (import.meta.main) await main();
