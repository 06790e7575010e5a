// What five write-ups of the assignment and its handout hold, item by item, and what makes it in `roofline study`.
import { studyPlan } from '../packages/bench-harness/src/study/plan.ts';

/** A table, figure or answer that a write-up holds. */
interface Item {
  readonly item: string;
  /** Problems of the handout, or write-ups by number. */
  readonly in: string;
  /** Runs of the plan, the beginnings of their names. */
  readonly runs?: readonly string[];
  /** Why there is none, or what of it is not there. */
  readonly lacks?: string;
}

const later = 'no command in this version';

/** In the order of the handout. */
export const studyItems: readonly Item[] = [
  {
    item: 'step times by size and context, deviations, backward over forward',
    in: 'handout, 0–4',
    runs: ['benchmarking_script.steps'],
  },
  { item: 'step times of 2.35b', in: '1', runs: ['benchmarking_script.2.35b'] },
  {
    item: 'warm-up 0, 1, 2, 5 of all sizes, forward and both passes',
    in: 'handout, 0, 1, 2, 4',
    runs: ['benchmarking_script.warmup'],
  },
  {
    item: 'profile against the clock, five sizes, three contexts',
    in: 'handout, 1, 2, 4',
    runs: ['nsys_profile'],
  },
  { item: 'kernel tables as Nsight prints them', in: '0', runs: ['nsys_profile'] },
  { item: 'top kernel and its instances, by phase', in: 'handout, 0', runs: ['nsys_profile'] },
  { item: 'share of products, forward and whole step', in: 'handout, 0, 1, 2, 4', runs: ['nsys_profile'] },
  { item: 'softmax against products, time and FLOPs', in: 'handout, 0, 1, 2, 4', runs: ['nsys_profile'] },
  { item: 'the four sums', in: 'handout, 0–4', runs: ['mixed_precision_accumulation'] },
  { item: 'dtypes under autocast', in: 'handout, 0–4', runs: ['benchmarking_mixed_precision.dtypes'] },
  {
    item: 'LayerNorm and RMSNorm in low precision',
    in: 'handout, 0–4',
    runs: ['benchmarking_mixed_precision.norms'],
  },
  { item: 'mixed precision times by size', in: 'handout, 0–4', runs: ['benchmarking_mixed_precision.times'] },
  { item: 'memory timelines, forward and whole step', in: 'handout, 0, 2, 3, 4', runs: ['memory_profiling'] },
  {
    item: 'memory peaks by context, mixed precision beside',
    in: 'handout, 0, 2, 3, 4',
    runs: ['memory_profiling'],
  },
  {
    item: 'residual stream, largest allocations and their origin',
    in: 'handout, 0, 2, 3, 4',
    runs: ['memory_profiling'],
    lacks: 'gradients’ bytes by block',
  },
  { item: 'recomputation: a strategy and its peak', in: 'handout (`gradient_checkpointing`)', lacks: later },
  {
    item: 'attention by d and n, memory before backward, where it fails',
    in: 'handout, 2, 3, 4',
    runs: ['pytorch_attention'],
  },
  {
    item: 'attention beside PyTorch’s plain attention, eager and compiled',
    in: '2, 3',
    runs: ['pytorch_attention.beside_pytorch'],
  },
  { item: 'compiled attention', in: 'handout, 2, 3', runs: ['torch_compile.attention'] },
  {
    item: 'compiled models, all passes',
    in: 'handout, 2',
    runs: ['torch_compile.models', 'torch_compile.flash_models'],
  },
  {
    item: 'flash benchmark, 128 to 65,536 by d and dtype',
    in: 'handout, 2',
    runs: ['flash_benchmarking.sweep'],
  },
  { item: 'flash tiles', in: '2', runs: ['flash_benchmarking.tiles'] },
  { item: 'leaderboard of 2025', in: '2', runs: ['flash_benchmarking.leaderboard'] },
  {
    item: 'all-reduce by size, ranks and backend',
    in: 'handout, 2, 3',
    runs: ['distributed_communication_single_node'],
    lacks: 'NCCL wants as many GPUs as ranks',
  },
  { item: 'data parallelism: naive, flat, overlapped, timelines', in: 'handout', runs: ['ddp.modes'] },
  {
    item: 'optimizer state sharded: memory by part, time',
    in: 'handout',
    runs: ['optimizer_state_sharding'],
    lacks: 'volume beside ZeRO’s formula',
  },
  { item: 'sharded parameters, timings and gathers', in: 'handout (`fsdp`)', lacks: later },
  {
    item: 'alternate ring, largest N by inequality',
    in: 'handout (`alternate_ring_all_reduce`, `*_calcs`)',
    lacks: later,
  },
  { item: 'leaderboard of 2026: a whole step of 8B on two GPUs', in: 'handout', lacks: later },
];

/** The runs that make an item. Throws for a name that the plan has not. */
function runsOf({ item, runs = [] }: Item) {
  return runs.flatMap((start) => {
    const found = studyPlan.flatMap((problem) =>
      problem.runs.filter(({ name }) => name.startsWith(start)).map((run) => ({ problem, run })),
    );
    if (found.length === 0) throw new Error(`The plan has no run ${start}, which is to make '${item}'.`);
    return found;
  });
}

/** Item, command, records and place, in Markdown. */
export function studyTable(): string {
  const code = (text: string) => `\`${text}\``;
  const rows = studyItems.map((each) => {
    const runs = runsOf(each);
    return [
      each.item,
      each.in,
      runs.map(({ run }) => code(`roofline ${run.words.full}`)).join('; '),
      runs.map(({ run }) => code(`records/${run.name}`)).join(', '),
      [...new Set(runs.map(({ problem }) => problem.title))].join(', '),
      each.lacks ?? '',
    ].map((text) => text || '–');
  });
  return aligned([
    [
      'Item',
      'In',
      'Command, in full sizes',
      'Records, in the study’s folder',
      'Place in the study',
      'Not there',
    ],
    ...rows,
  ]);
}

/** A pipe table as Prettier has it. */
function aligned([head, ...rows]: readonly (readonly string[])[]): string {
  const widths = head!.map((_, index) => Math.max(...[head!, ...rows].map((row) => row[index]!.length)));
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, index) => cell.padEnd(widths[index]!)).join(' | ')} |\n`;
  return [head!, widths.map((width) => '-'.repeat(width)), ...rows].map(line).join('');
}
