// The tables and the lead chart of README and docs/benchmarks.md, from the records under docs/results.
import { join, resolve } from 'node:path';
import {
  ratioOfMedians,
  readResults,
  summarize,
  type RatioEstimate,
} from '../packages/bench-harness/src/index.ts';
import {
  formatRatio,
  renderMarkdown,
  type RatioPlot,
  type Row,
  type Table,
} from '../packages/reports/src/index.ts';
import { studyTable } from './study-items.ts';

const results = resolve(import.meta.dirname, '../docs/results');

/** A measured cell of `e2e` next to a peer's. */
export interface Cell {
  readonly size: string;
  readonly context: number;
  readonly mode: string;
  readonly dtype: string;
  readonly peerExecution: string;
  readonly oursMs: number;
  readonly theirsMs: number;
  /** Of the medians, ours over theirs. */
  readonly ratio: RatioEstimate;
  /** Ours over theirs of the peaks. */
  readonly memoryRatio: number;
}

interface Samples {
  readonly deviceMs: number[];
  readonly memory: { readonly peakAllocatedBytes: number };
  readonly peer: {
    readonly deviceMs: number[];
    /** Of JAX, which is fastest so. */
    readonly backToBackMs?: number[];
    readonly peakAllocatedBytes: number;
  };
}

/** The cells of these folders of records, in their order. */
export function cellsOf(...folders: readonly string[]): Cell[] {
  return folders
    .flatMap((folder) => readResults(join(results, folder)))
    .map(({ parameters, result }): Cell => {
      const { deviceMs, memory, peer } = result as unknown as Samples;
      const { size, context, mode, dtype, peerExecution } = parameters as unknown as Cell;
      const theirs = peer.backToBackMs ?? peer.deviceMs;
      return {
        ...{ size, context, mode, dtype, peerExecution },
        oursMs: summarize(deviceMs).median,
        theirsMs: summarize(theirs).median,
        ratio: ratioOfMedians(deviceMs, theirs),
        memoryRatio: memory.peakAllocatedBytes / peer.peakAllocatedBytes,
      };
    });
}

/** Compiled steps and PyTorch's, compiled. */
export const compiledCells = () =>
  cellsOf('h200-compiled-peer', 'h200-compiled-float32', 'h200-compiled-float32-2.7b');

/** A step of ours next to the faster peer, with the times of those that were measured. */
interface LeadStep extends Pick<Cell, 'size' | 'context' | 'oursMs' | 'theirsMs' | 'ratio'> {
  readonly faster: 'JAX' | 'PyTorch';
  readonly jaxMs: number | null;
  readonly torchMs: number | null;
}

/** Whole compiled steps in bfloat16, what the first screen shows: ours compared with the stronger of the two, in whose turn it ran. */
function leadSteps(): LeadStep[] {
  const steps = Map.groupBy(cellsOf('h200-peers'), ({ size, context }) => `${size} ${context}`);
  return [...steps.values()].map((cells) => {
    const timeBy = (execution: string) =>
      cells.find(({ peerExecution }) => peerExecution === execution)?.theirsMs ?? null;
    const strongest = cells.reduce((best, cell) => (cell.theirsMs < best.theirsMs ? cell : best));
    const { size, context, oursMs, theirsMs, ratio, peerExecution } = strongest;
    const faster = peerExecution === 'jit' ? 'JAX' : 'PyTorch';
    return {
      ...{ size, context, oursMs, theirsMs, ratio, faster },
      ...{ jaxMs: timeBy('jit'), torchMs: timeBy('whole-graph') },
    };
  });
}

/** The least and the most of the lead's ratios. */
export function leadRange(): [least: string, most: string] {
  const ratios = leadSteps().map(({ ratio }) => ratio.ratio);
  return [Math.min(...ratios).toFixed(2), Math.max(...ratios).toFixed(2)];
}

/** The README's picture: each model's step over the strongest peer's, so that small models are seen as well as large ones. */
export function leadChart(): RatioPlot {
  const [least, most] = leadRange();
  return {
    kind: 'ratios',
    id: 'compiled-steps',
    title: `A training step takes ${least} to ${most} of JAX's or PyTorch's best time`,
    caption:
      'Time of one whole bfloat16 step over that of the faster of JAX 0.11 (one jit, cuDNN attention) and PyTorch 2.11 ' +
      '(Inductor, the whole step in one CUDA graph). One NVIDIA H200, batch 4, steps of both in turn. A pale band is the 95 % ' +
      'interval of a ratio.',
    ...{
      ours: 'Roofline',
      theirs: 'Strongest peer',
      value: 'duration',
      heads: ['Model', 'Context', 'Faster peer'],
    },
    rows: leadSteps().map(({ size, context, oursMs, theirsMs, faster, ratio: { low, high } }) => ({
      ...{ names: [size, String(context), faster], ours: oursMs, theirs: theirsMs },
      ...{ low, high },
    })),
  };
}

const text = (key: string, label: string) => ({ key, label, kind: 'text' }) as const;
const milliseconds = (key: string, label: string) => ({ key, label, kind: 'duration', unit: 'ms' }) as const;
const ratio = (key: string, label: string) => ({ key, label, kind: 'ratio' }) as const;
const right = { align: 'right' } as const;

function table(columns: Table['columns'], rows: Row[]): string {
  return renderMarkdown({ kind: 'table', id: 'table', title: '', columns, rows });
}

function intervalOf({ low, high }: RatioEstimate): string | null {
  return Number.isNaN(low) ? null : `${formatRatio(low)} to ${formatRatio(high)}`;
}

function compiledTable(cells: readonly Cell[], columns: Table['columns']): string {
  const times = [
    milliseconds('oursMs', 'Roofline'),
    milliseconds('theirsMs', 'PyTorch'),
    { ...ratio('over', 'Roofline / PyTorch'), emphasis: 'strong' } as const,
    { ...text('interval', '95 % interval'), ...right },
  ];
  return table(
    [...columns, ...times],
    cells.map(({ ratio: estimate, ...cell }) => ({
      ...cell,
      over: estimate.ratio,
      interval: intervalOf(estimate),
    })),
  );
}

function leadTable(): string {
  return table(
    [
      ...sizeColumns,
      ...[
        milliseconds('oursMs', 'Roofline'),
        milliseconds('jaxMs', 'JAX'),
        milliseconds('torchMs', 'PyTorch'),
      ],
      { ...ratio('over', 'Roofline / faster peer'), emphasis: 'strong' },
      { ...text('interval', '95 % interval'), ...right },
    ],
    leadSteps().map(({ ratio: estimate, ...step }) => ({
      ...step,
      over: estimate.ratio,
      interval: intervalOf(estimate),
    })),
  );
}

const sizeColumns = [text('size', 'Model'), { ...text('context', 'Context'), ...right }];

function eagerTable(): string {
  const [float32, bfloat16] = [cellsOf('h200-float32'), cellsOf('h200-bfloat16')];
  const rows = float32.flatMap((cell): Row[] => {
    const low = bfloat16.find(({ size, mode }) => size === cell.size && mode === cell.mode);
    if (!low) return [];
    return [
      {
        ...{ size: cell.size, mode: cell.mode },
        ...{ ours32: cell.oursMs, theirs32: cell.theirsMs, ratio32: cell.ratio.ratio },
        ...{ ours16: low.oursMs, theirs16: low.theirsMs, ratio16: low.ratio.ratio },
        ...{ memory32: cell.memoryRatio, memory16: low.memoryRatio },
      },
    ];
  });
  return table(
    [
      ...[text('size', 'Model'), text('mode', 'Mode')],
      ...[
        milliseconds('ours32', 'float32: Roofline'),
        milliseconds('theirs32', 'PyTorch'),
        ratio('ratio32', 'Ratio'),
      ],
      ...[milliseconds('ours16', 'bfloat16: Roofline'), milliseconds('theirs16', 'PyTorch, bfloat16')],
      ...[
        ratio('ratio16', 'Ratio, bfloat16'),
        ratio('memory32', 'Memory, float32'),
        ratio('memory16', 'Memory, bfloat16'),
      ],
    ],
    rows,
  );
}

/** The tables by the names that pages give the places for them. */
const tables: Readonly<Record<string, () => string>> = {
  'compiled steps': leadTable,
  compiled: () =>
    compiledTable(compiledCells(), [...sizeColumns, text('mode', 'Mode'), text('dtype', 'dtype')]),
  eager: eagerTable,
  study: studyTable,
};

/**
 * A page with its tables as the records have them: each lies between `<!-- records: NAME -->` and `<!-- end -->`. Throws for
 * a name that no table has.
 */
export function withTables(page: string): string {
  return page.replace(
    /(<!-- records: (.*?) -->\n)[\s\S]*?(<!-- end -->)/g,
    (_, begin: string, name: string, end: string) => {
      const make = tables[name];
      if (!make)
        throw new Error(
          `No table is made of records under the name '${name}': ${Object.keys(tables).join(', ')}.`,
        );
      return `${begin}\n${make()}\n${end}`;
    },
  );
}

/** The pages that have such tables, from the root of the repository. */
export const pagesWithTables = ['README.md', 'docs/benchmarks.md', 'docs/study.md'] as const;
