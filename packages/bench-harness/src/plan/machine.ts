import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { modelAttentions } from '../attention/kinds.ts';
import { type CollectiveOp, collectiveOps, factsOf } from '../benchmarks/allreduce/operations.ts';
import { fitLatencyBandwidth } from '../measuring/latency-bandwidth.ts';
import { ddpModes, ddpOptimizers } from '../benchmarks/ddp/parameters.ts';
import { executions } from '../execution/kinds.ts';
import { ceilingsSchema, dtypes } from '../measuring/ceilings.ts';
import { summarize } from '../measuring/statistics.ts';
import { modelShape } from '../model/shape.ts';
import { packageDirectory } from '../paths.ts';
import type { MachineName } from './kinds.ts';

const count = z.int().positive();
const milliseconds = z.number().nonnegative();

/** A training step that was measured, as plans are held against it. */
const measuredStep = z.strictObject({
  ...{ size: z.string(), shape: modelShape, context: count, batch: count },
  ...{ dtype: z.enum(dtypes), attention: z.enum(modelAttentions), execution: z.enum(executions) },
  /** Each with `batch` sequences; of `fsdp-context`, which divides them, all of them together. */
  ranks: count,
  /** Ranks whose processors are the same, as those of one CPU: such steps say nothing of a rank that has one to itself. */
  sharing: count,
  ...{ optimizer: z.enum(ddpOptimizers), reduction: z.enum(['none', ...ddpModes]) },
  /** Calls that reduce the gradients. */
  reductions: z.int().nonnegative(),
  stepMs: milliseconds,
  /** Forward, backward and a whole optimizer without communication; null where the optimizer is sharded. */
  computationMs: milliseconds.nullable(),
  /** The reductions alone, and what they add to forward and backward. */
  communicationMs: milliseconds,
  exposedMs: milliseconds,
  peakBytes: z.number().positive(),
});
export type MeasuredStep = z.infer<typeof measuredStep>;

const measuredCollective = z.strictObject({
  ...{ op: z.enum(collectiveOps), ranks: count, bytes: count, timeMs: z.number().positive() },
});
export type MeasuredCollective = z.infer<typeof measuredCollective>;

/** FLOP/s of flash attention's kernels under a causal mask, which count half of the products: the best of several lengths. */
const attentionCeiling = z.strictObject({
  ...{
    headDimension: count,
    dtype: z.enum(dtypes),
    forward: z.number().positive(),
    backward: z.number().positive(),
  },
});
export type AttentionCeiling = z.infer<typeof attentionCeiling>;

/** What a plan knows of the devices and of the links between them: ceilings, and what was measured. */
export const machineSchema = z.strictObject({
  name: z.string(),
  /** When the last of it was measured, ISO 8601. */
  measuredAt: z.iso.datetime(),
  /** Of one device. */
  memoryBytes: z.number().positive(),
  ceilings: ceilingsSchema.omit({ spread: true }),
  attention: z.array(attentionCeiling),
  steps: z.array(measuredStep),
  collectives: z.array(measuredCollective),
});
export type Machine = z.infer<typeof machineSchema>;

/** Where `npm run results` writes what is known of a machine. */
export const machinePath = (name: MachineName) => join(packageDirectory, 'machines', `${name}.json`);

export function shippedMachine(name: MachineName): Machine {
  return machineSchema.parse(JSON.parse(readFileSync(machinePath(name), 'utf8')));
}

/** How long collectives take between some ranks: α for a call, and what a link carries. */
export interface LinkFit {
  readonly ranks: number;
  readonly latencyMs: number;
  /** nccl-tests' bus bandwidth, which compares ops and numbers of ranks: of each op that was measured, and their median. */
  readonly busBytesPerSecond: number;
  readonly busOfOp: Readonly<Partial<Record<CollectiveOp, number>>>;
}

/** α-β fits of the collectives of each number of ranks, fewest first. */
export function linkFits({ collectives }: Machine): LinkFit[] {
  const byRanks = [...Map.groupBy(collectives, ({ ranks }) => ranks)].toSorted(([a], [b]) => a - b);
  return byRanks.flatMap(([ranks, calls]) => {
    const fits = [...Map.groupBy(calls, ({ op }) => op)].flatMap(([op, points]) => {
      const fit = fitLatencyBandwidth(points);
      return fit
        ? [{ op, latencyMs: fit.latencyMs, bus: fit.bytesPerSecond * factsOf[op].busFactor(ranks) }]
        : [];
    });
    if (fits.length === 0) return [];
    const median = (key: 'latencyMs' | 'bus') => summarize(fits.map((fit) => fit[key])).median;
    const busOfOp = Object.fromEntries(fits.map(({ op, bus }) => [op, bus]));
    return [{ ranks, latencyMs: median('latencyMs'), busBytesPerSecond: median('bus'), busOfOp }];
  });
}

/**
 * By what share of its time communication that runs beside computation slows that down, as steps with overlap were
 * measured to: their exposed time over that of the communication alone. 0 where none was measured.
 */
export function interferenceOf(steps: readonly MeasuredStep[]): number {
  const shares = steps.flatMap(({ reduction, ranks, exposedMs, communicationMs }) =>
    reduction === 'overlap' && ranks > 1 ? [Math.min(1, exposedMs / communicationMs)] : [],
  );
  return shares.length === 0 ? 0 : summarize(shares).median;
}
