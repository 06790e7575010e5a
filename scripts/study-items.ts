// What five write-ups of the assignment and its handout hold, item by item, and what makes it in `roofline study`.
import { studyPlan } from '../packages/bench-harness/src/study/plan.ts';

/** A table, figure or answer that a write-up holds. */
interface Item {
  readonly item: string;
  /** Problems of the handout, or write-ups by number. */
  readonly in: string;
  /** Runs of the plan, the beginnings of their names. */
  readonly runs?: readonly string[];
  /** Commands that make it outside of `roofline study`, in the words after `roofline`. */
  readonly commands?: readonly string[];
  /** Why there is none, or what is missing from it. */
  readonly lacks?: string;
}

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
    item: 'memory peaks by context, mixed precision next to it',
    in: 'handout, 0, 2, 3, 4',
    runs: ['memory_profiling'],
  },
  {
    item: 'residual stream, largest allocations and their origin, gradients’ bytes by block',
    in: 'handout, 0, 2, 3, 4',
    runs: ['memory_profiling'],
  },
  {
    item: 'recomputation: a strategy and its peak',
    in: 'handout (`gradient_checkpointing`)',
    runs: ['gradient_checkpointing'],
  },
  {
    item: 'attention by d and n, memory before backward, where it fails',
    in: 'handout, 2, 3, 4',
    runs: ['pytorch_attention'],
  },
  {
    item: 'attention next to PyTorch’s plain attention, eager and compiled',
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
    lacks: 'NCCL needs as many GPUs as ranks',
  },
  { item: 'data parallelism: naive, flat, overlapped, timelines', in: 'handout', runs: ['ddp.modes'] },
  {
    item: 'optimizer state sharded: memory by part, time, volume next to ZeRO’s formula',
    in: 'handout',
    runs: ['optimizer_state_sharding'],
  },
  {
    item: 'sharded parameters, timings and gathers',
    in: 'handout (`fsdp`)',
    runs: ['fsdp'],
    lacks: '`hybrid`: needs four ranks',
  },
  {
    item: 'largest N by inequality',
    in: 'handout (`*_calcs`)',
    commands: ['plan --size 8b --context 8192 --gpus 64 --nodes-of 8 --link 50GB/s'],
    lacks: 'a plan is calculated, not measured: [a page of its own](results/plan-8b/report.md)',
  },
  {
    item: 'alternate ring',
    in: 'handout (`alternate_ring_all_reduce`)',
    commands: ['plan --size 8b --context 8192 --gpus 64 --nodes-of 8 --link 50GB/s'],
    lacks: 'calculated, not measured: [on the same page](results/plan-8b/report.md)',
  },
  {
    item: 'leaderboard of 2026: a whole step of 8B on two GPUs',
    in: 'handout',
    commands: [
      'ddp --backend nccl --size 8b --context 32768 --batch 1 --dtype bfloat16 --attention flash --execution compiled --recompute attention-kept --logits chunked --memory-budget 69GiB --mode fsdp --nproc 2',
    ],
    lacks:
      'a page of its own: [on two GPUs](results/h200x2-models/report.md), and [on one](results/h200-8b/report.md)',
  },
];

/** The runs that make an item. Throws for a name that is not in the plan. */
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
      [...runs.map(({ run }) => run.words.full), ...(each.commands ?? [])]
        .map((words) => code(`roofline ${words}`))
        .join('; '),
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

/** A pipe table as Prettier formats it. */
function aligned([head, ...rows]: readonly (readonly string[])[]): string {
  const widths = head!.map((_, index) => Math.max(...[head!, ...rows].map((row) => row[index]!.length)));
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, index) => cell.padEnd(widths[index]!)).join(' | ')} |\n`;
  return [head!, widths.map((width) => '-'.repeat(width)), ...rows].map(line).join('');
}
