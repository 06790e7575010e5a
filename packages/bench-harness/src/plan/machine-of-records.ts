import type { z } from 'zod';
import { attentionShape } from '../attention/shape.ts';
import { attentionFlops } from '../attention/work.ts';
import { countedBytes } from '../benchmarks/allreduce/operations.ts';
import { collectiveCell } from '../benchmarks/allreduce/parameters.ts';
import { mainOf, sidesOf } from '../benchmarks/allreduce/report/measured.ts';
import { collectiveResult } from '../benchmarks/allreduce/result.ts';
import { type DdpCell, ddpCell } from '../benchmarks/ddp/parameters.ts';
import { ddpResult } from '../benchmarks/ddp/result.ts';
import { flashResult } from '../benchmarks/flash/result.ts';
import { e2eCell, type E2eCell } from '../benchmarks/e2e/parameters.ts';
import { e2eResult } from '../benchmarks/e2e/result.ts';
import { readable } from '../benchmarks/readable.ts';
import { UsageError } from '../errors.ts';
import { summarize } from '../measuring/statistics.ts';
import { noBudget } from '../memory-saving/kinds.ts';
import { deviceIdentity } from '../records/environment.ts';
import { canonicalJson, type Json } from '../records/json.ts';
import type { CellRecord } from '../records/record.ts';
import { interpret } from '../report/measurement.ts';
import type { AttentionCeiling, Machine, MeasuredCollective, MeasuredStep } from './machine.ts';

const MIB = 2 ** 20;
const median = (samples: readonly number[]) => summarize(samples).median;
/** As many digits as a plan can use. */
const rounded = (value: number) => Number(value.toPrecision(6));

/**
 * What the records of `e2e`, `ddp`, `allreduce` and `flash` say of a machine; others are left out, and steps that
 * make activations again or logits in chunks, which have other work than those that calibrate plans. Of steps and calls that were
 * measured several times the latest counts, of ceilings the median. Throws a UsageError for records of several devices,
 * and where no ceilings are among them.
 */
export function machineOf(records: readonly CellRecord[]): Machine {
  const ordered = records
    .filter(({ status }) => status === 'ok')
    .toSorted((a, b) => a.startedAt.localeCompare(b.startedAt));
  const devices = [...new Set(records.map(({ environment }) => deviceIdentity(environment)))];
  if (devices.length !== 1)
    throw new UsageError(
      `A plan is of one kind of device, and the records are of ${devices.join(' and ')}; name folders of one.`,
    );
  const [last] = ordered.slice(-1);
  if (!last) throw new UsageError('None of the records has a result, which a plan is made of.');
  const { device, system } = last.environment;
  const memoryMiB = device.properties['memoryMiB'];
  return {
    name: device.type === 'cuda' ? device.name : devices[0]!,
    measuredAt: last.startedAt,
    memoryBytes: typeof memoryMiB === 'number' ? memoryMiB * MIB : system.memoryBytes,
    ceilings: ceilingsOf(ordered),
    attention: attentionOf(ordered),
    steps: latest(ordered.flatMap(stepsOf), askedOfSteps),
    collectives: latest(collectivesOf(ordered), ['op', 'ranks', 'bytes']),
  };
}

/** What tells one measured step from another. */
const askedOfSteps = [
  ...(['shape', 'context', 'batch', 'dtype', 'attention', 'execution'] as const),
  ...(['ranks', 'sharing', 'optimizer', 'reduction'] as const),
] as const satisfies readonly (keyof MeasuredStep)[];

/** The last of the items that are alike in `keys`. */
function latest<Item extends object, Key extends keyof Item>(
  items: readonly Item[],
  keys: readonly Key[],
): Item[] {
  const asked = (item: Item) => canonicalJson(keys.map((key) => item[key]) as Json);
  return [...new Map(items.map((item) => [asked(item), item])).values()];
}

function ceilingsOf(records: readonly CellRecord[]): Machine['ceilings'] {
  const measured = records.flatMap(({ ceilings }) => (ceilings ? [ceilings] : []));
  if (measured.length === 0)
    throw new UsageError(
      'No record holds ceilings of its device: add a folder of `roofline e2e`, whose records do.',
    );
  const byDtype = Map.groupBy(
    measured.flatMap(({ matmulFlopsPerSecond }) => Object.entries(matmulFlopsPerSecond)),
    ([dtype]) => dtype,
  );
  return {
    matmulFlopsPerSecond: Object.fromEntries(
      [...byDtype].map(([dtype, values]) => [dtype, rounded(median(values.map(([, flops]) => flops)))]),
    ),
    copyBytesPerSecond: rounded(median(measured.map(({ copyBytesPerSecond }) => copyBytesPerSecond))),
  };
}

interface Schemas<Cell, Result> {
  readonly name: string;
  readonly cell: z.ZodType<Cell>;
  readonly result: z.ZodType<Result>;
}

/** Throws a UsageError for a record of another version. */
function read<Cell, Result>(
  record: CellRecord,
  benchmark: Schemas<Cell, Result>,
): { cell: Cell; result: Result } {
  return readable(benchmark, [record], () => ({
    cell: benchmark.cell.parse(record.parameters),
    result: benchmark.result.parse(record.result),
  }));
}

function stepsOf(record: CellRecord): MeasuredStep[] {
  if (record.benchmark === 'ddp') return dataParallelSteps(record);
  if (record.benchmark !== 'e2e') return [];
  const { cell, result } = read(record, { name: 'e2e', cell: e2eCell, result: e2eResult });
  if (cell.mode !== 'train-step' || savesMemory(cell)) return [];
  const { deviceMs, memory } = result;
  const stepMs = rounded(median(deviceMs));
  return [
    {
      ...{ ...askedOf(cell), ranks: 1, sharing: 1 },
      ...{ optimizer: 'whole', reduction: 'none', reductions: 0, stepMs, computationMs: stepMs },
      ...{ communicationMs: 0, exposedMs: 0, peakBytes: memory.peakAllocatedBytes },
    },
  ];
}

type StepCell = E2eCell | DdpCell;

/** What a step was asked, whichever benchmark measured it. */
function askedOf({ size, shape, context, batch, attention, execution, dtype }: StepCell) {
  return { size, shape, context, batch, dtype, attention, execution };
}

function savesMemory({ recompute, logits, memoryBudget }: StepCell): boolean {
  return recompute !== 'none' || logits !== 'whole' || memoryBudget !== noBudget;
}

function dataParallelSteps(record: CellRecord): MeasuredStep[] {
  const { cell, result } = read(record, { name: 'ddp', cell: ddpCell, result: ddpResult });
  if (savesMemory(cell)) return [];
  const { times, memory, bucketBytes } = result;
  const { optimizer, worldSize: ranks, mode } = cell;
  const { localMs, synchronizedMs, optimizerMs } = times;
  const exposedMs =
    localMs && synchronizedMs && median(synchronizedMs.map((ms, step) => ms - localMs[step]!));
  const isWhole = optimizer === 'whole' || ranks === 1;
  const step: MeasuredStep = {
    ...{ ...askedOf(cell), ranks },
    sharing: record.environment.device.type === 'cpu' ? ranks : 1,
    ...{ optimizer, reduction: ranks === 1 ? 'none' : mode, reductions: bucketBytes.length },
    stepMs: rounded(median(times.stepMs)),
    // Compiled, gradients of data parallelism are in memory, and those of a model alone need not be.
    computationMs: localMs && optimizerMs && isWhole ? rounded(median(localMs) + median(optimizerMs)) : null,
    communicationMs: rounded(median(times.communicationMs)),
    exposedMs: exposedMs === null ? 0 : rounded(Math.max(0, exposedMs)),
    peakBytes: Math.max(...memory.map(({ peakBytes }) => peakBytes)),
  };
  return [step];
}

/** Of our flash attention under a causal mask, for each head dimension and dtype. */
function attentionOf(records: readonly CellRecord[]): AttentionCeiling[] {
  const timed = records.flatMap((record) => {
    if (record.benchmark !== 'flash') return [];
    const { cell, result } = read(record, { name: 'flash', cell: attentionShape, result: flashResult });
    const ours = result.timed.find(({ side, attention }) => side === 'ours' && attention === 'flash');
    if (cell.mask !== 'causal' || ours?.outcome.status !== 'ok') return [];
    const { forward, backward } = ours.outcome.samplesMs;
    if (!forward || !backward) return [];
    const rate = (pass: 'forward' | 'backward', samplesMs: readonly number[]) =>
      (1000 * attentionFlops(cell, pass)) / median(samplesMs);
    return [{ ...cell, forward: rate('forward', forward), backward: rate('backward', backward) }];
  });
  const kinds = Map.groupBy(timed, ({ headDimension, dtype }) => `${headDimension} ${dtype}`);
  return [...kinds.values()].map((group) => {
    const { headDimension, dtype } = group[0]!;
    const best = (pass: 'forward' | 'backward') => rounded(Math.max(...group.map((each) => each[pass])));
    return { headDimension, dtype, forward: best('forward'), backward: best('backward') };
  });
}

/** How the records of collectives are read; nothing of how they are shown. */
const collectives = {
  name: 'allreduce',
  cell: collectiveCell,
  result: collectiveResult,
  describe: () => '',
  samplesMs: () => [],
};

function collectivesOf(records: readonly CellRecord[]): MeasuredCollective[] {
  const own = records.filter(({ benchmark }) => benchmark === 'allreduce');
  const measured = readable(collectives, own, () => own.map((record) => interpret(collectives, record)));
  return sidesOf(measured).flatMap((side) => {
    const main = side.side === 'ours' ? mainOf(side) : undefined;
    const { op, ranks } = side.cell;
    return main ? [{ op, ranks, bytes: countedBytes(side.cell), timeMs: rounded(main.timeMs) }] : [];
  });
}
