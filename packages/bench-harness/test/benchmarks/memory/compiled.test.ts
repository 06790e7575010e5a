import { compile, mul, ones, softmax, sum } from '@roofline/tensor-core';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { describe, expect, it } from 'vitest';
import { recordStep } from '../../../src/benchmarks/memory/record-step.ts';
import { memoryBenchmark } from '../../../src/benchmarks/memory/benchmark.ts';
import { summarizeStep } from '../../../src/benchmarks/memory/summarize-step.ts';
import type { Workload } from '../../../src/benchmarks/e2e/workload.ts';
import { toyCell, toyRecord } from '../../fixtures/records.ts';

const cell = { ...toyCell, execution: 'compiled' } as const;

describe('the memory of compiled steps', () => {
  it('is swept', () => {
    const sweep = memoryBenchmark.parameters.parse({
      model: [{ size: toyCell.size, shape: toyCell.shape }],
      ...{ context: [8], batch: [2], mode: ['forward'], dtype: ['float32'], attention: ['plain'] },
      ...{ warmup: 0, steps: 1, seed: 0, stackDepth: 0, execution: ['eager', 'compiled'] },
    });
    expect(sweep.execution).toEqual(['eager', 'compiled']);
  });

  it.skipIf(hostCompilerVersion() === null)('is their arena, where their result lies too, on a GPU', () => {
    const device = openEmulatedDevice();
    const x = ones([1 << 18], { device });
    const step = compile(() => sum(mul(softmax(x, 0), softmax(mul(x, x), 0))));
    for (let i = 0; i < 2; i++) step().dispose();
    const workload = { step: () => step().dispose() } as unknown as Workload;
    const recorded = recordStep(workload, device, { device });
    const result = summarizeStep(cell, recorded, 1 << 18);
    expect(result.weightBytes).toBe(4 << 18);
    expect(result.arenaBytes).toBeGreaterThanOrEqual(2 * result.weightBytes);
    expect(result.weightBytes + result.arenaBytes + result.otherHeldBytes).toBe(result.peakAllocatedBytes);
    const [peak, ...others] = result.phases;
    expect(others).toEqual([]);
    expect(peak).toMatchObject({ phase: 'whole step', bytes: result.peakAllocatedBytes });
    expect(peak!.live).toContainEqual(
      expect.objectContaining({ what: 'arena of the compiled step', bytes: result.arenaBytes }),
    );
    expect(result.timeline.labels).toContain('arena of the compiled step');

    const overhead = { offMs: [1], onMs: [1] };
    const measured = { parameterCount: 1 << 18, ...result, overhead, snapshot: null };
    const record = toyRecord(cell, { benchmark: 'memory', result: measured });
    expect(memoryBenchmark.toTable([record]).rows[0]).toMatchObject({
      stepBytes: result.peakAllocatedBytes,
      arenaBytes: result.arenaBytes,
      forwardBytes: null,
    });
    // The toy's environment is a CPU's.
    expect(JSON.stringify(memoryBenchmark.toReport([record]))).toContain(
      'On the CPU the ops of compiled steps ran one by one',
    );
    expect(
      JSON.stringify(memoryBenchmark.toReport([toyRecord({}, { benchmark: 'memory', result: measured })])),
    ).not.toContain('one by one');
  });
});
