import type { CudaContext, StridedMemory } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import type { FlashCall } from '../../../src/cuda/flash-call.ts';
import { launchMmaBackward, launchMmaForward } from '../../../src/cuda/mma/mma-kernels.ts';
import { type MmaBackwardPlan, planMmaBackward, planMmaForward } from '../../../src/cuda/mma/mma-plan.ts';
import type { KernelProblem } from '../../../src/cuda/kernel-problem.ts';

const sizes = { batch: 2, heads: 6, keyHeads: 3, queries: 37, keys: 700, headDimension: 40 };
const settings = { causal: true, scale: 0.125 };
const gpu = { computeCapability: 90, multiprocessors: 132, maxSharedBytesPerBlock: 227 * 1024 };
const problem: KernelProblem = {
  ...{ ...sizes, ...settings, ...gpu, dtype: 'bfloat16', kernels: 'mma' },
  ...{ deterministic: true, float32Precision: 'highest' },
};

/** The bytes of workspace that launches ask for, in order. */
function workspaces(launch: (call: FlashCall) => void): number[] {
  const asked: number[] = [];
  const context = {
    workspace: (bytes: number) => asked.push(bytes),
    kernel: () => ({ launch: () => {} }),
  } as unknown as CudaContext;
  const memory: StridedMemory = { address: 4096, dtype: 'bfloat16', shape: [], strides: [] };
  const tensors = { q: memory, k: memory, v: memory, o: memory };
  launch({ context, dtype: 'bfloat16', sizes, settings, tensors, rows: { lse: 4096, statistics: null } });
  return asked;
}

describe('the workspace of kernels on tensor cores', () => {
  it('holds the sums of all splits of a row, its largest score and the sum of its weights', () => {
    const plan = planMmaForward(problem)!;
    const splits = 3;
    const asked = workspaces((call) =>
      launchMmaForward(call, { ...plan, forward: { ...plan.forward, splits } }),
    );
    const rows = 2 * 6 * 37;
    // As flash_mma_forward.cuh lays it out, of a head dimension rounded up to 48.
    expect(asked).toEqual([4 * splits * rows * (48 + 2)]);
    expect(
      workspaces((call) => launchMmaForward(call, { ...plan, forward: { ...plan.forward, splits: 1 } })),
    ).toEqual([]);
  });

  it('holds what backward hands on of each tile of queries, its sums and its turn', () => {
    const plan = planMmaBackward(problem)!;
    const { queries, headDimension, parts } = plan.backward;
    const tiles = 2 * 6 * Math.ceil(37 / queries);
    const ofRows = [4 * tiles * queries * 3, 4 * tiles * queries * headDimension];
    const asked = (of: MmaBackwardPlan) => workspaces((call) => launchMmaBackward(call, of));
    // As flash_mma_backward.cuh lays them out; a turn for each part, and the number of blocks that have begun.
    expect(asked(plan)).toEqual([...ofRows, 4 * (1 + tiles * parts)]);
    expect(asked({ ...plan, deterministic: false })).toEqual(ofRows);
    const inParts = { ...plan, backward: { ...plan.backward, parts: 2 as const } };
    expect(asked(inParts)[2]).toBe(4 * (1 + tiles * 2));
  });
});
