import { defineBenchmark } from '../define-benchmark.ts';
import { describeCell, e2eCell, expandCells } from '../e2e/parameters.ts';
import { interpretMemory } from './report/interpret.ts';
import {
  memoryParameters,
  type MemoryCell,
  type MemoryParameters,
  type MemorySettings,
} from './parameters.ts';
import { memoryReport } from './report/report.ts';
import { memoryResult } from './result.ts';
import { sweepTable } from './report/tables.ts';

/** Where the memory of a training step goes: one step recorded, allocation by allocation. */
export const memoryBenchmark = defineBenchmark({
  name: 'memory',
  title: 'Memory of a training step',
  parameters: memoryParameters,
  cell: e2eCell,
  result: memoryResult,
  settings: ({ warmup, steps, seed, stackDepth }: MemoryParameters): MemorySettings => ({
    warmup,
    steps,
    seed,
    stackDepth,
  }),
  expand: (parameters) => expandCells({ ...parameters, peer: null, peerAttentions: ['plain'] }),
  describe: describeCell,
  async measure(cell: MemoryCell, context) {
    // Only the cell's own process opens a device.
    const { measureMemory } = await import('./measure.ts');
    return measureMemory(cell, context);
  },
  samplesMs: ({ overhead }) => overhead.offMs,
  peakBytes: ({ peakAllocatedBytes }) => peakAllocatedBytes,
  toTable: (records) => sweepTable(records.map(interpretMemory)),
  toReport: memoryReport,
});
