import type { Links } from '../../src/plan/links.ts';
import type { Machine, MeasuredStep } from '../../src/plan/machine.ts';
import type { StepSetting } from '../../src/plan/setting.ts';

/** 1,000 embeddings of 16, two layers of 4·16² + 3·16·32 + 2·16 = 2592, and a head of 16,016: 37,200 in all. */
export const shape = {
  ...{ vocabularySize: 1000, modelDimension: 16, feedForwardDimension: 32, layers: 2, heads: 4 },
};
export const parameters = 16_000 + 2 * 2592 + 16_016;

export const setting: StepSetting = {
  ...{ shape, context: 8, batch: 2, dtype: 'bfloat16', attention: 'flash', execution: 'compiled' },
  recompute: 'none',
};

export const measuredStep: MeasuredStep = {
  ...{
    size: 'toy',
    shape,
    context: 8,
    batch: 2,
    dtype: 'bfloat16',
    attention: 'flash',
    execution: 'compiled',
  },
  ...{ ranks: 1, sharing: 1, optimizer: 'whole', reduction: 'none', reductions: 0 },
  ...{ stepMs: 10, computationMs: 10, communicationMs: 0, exposedMs: 0, peakBytes: 1e6 },
};

/** All-reduces of two ranks: 10 µs and 100 GB/s. */
export const toyMachine: Machine = {
  ...{ name: 'a toy', measuredAt: '2026-01-02T03:04:05.000Z', memoryBytes: 2 ** 30 },
  ceilings: { matmulFlopsPerSecond: { bfloat16: 1e12 }, copyBytesPerSecond: 1e11 },
  attention: [],
  steps: [measuredStep],
  collectives: [
    { op: 'allreduce', ranks: 2, bytes: 1_000_000, timeMs: 0.02 },
    { op: 'allreduce', ranks: 2, bytes: 100_000_000, timeMs: 1.01 },
  ],
};

/** Nodes of 8 with 10 GB/s from each device to others. */
export const toyLinks: Links = {
  inside: [{ ranks: 2, latencyMs: 0.01, busBytesPerSecond: 100e9, busOfOp: {} }],
  perNode: 8,
  outsideBytesPerSecond: 10e9,
};
