import { describe, it } from 'vitest';
import { foundNvcc } from '../../../../../tooling/nvcc.ts';
import { hopperForwardDefines } from '../../../src/cuda/hopper/hopper-forward.ts';
import { planHopperForward } from '../../../src/cuda/hopper/hopper-forward-plan.ts';
import type { KernelProblem } from '../../../src/cuda/kernel-problem.ts';
import { distinct } from '../nvcc.ts';
import { expectNoSpills, groupsOf } from './compile-for-hopper.ts';

const gpu = { computeCapability: 90, multiprocessors: 132, maxSharedBytesPerBlock: 227 * 1024 };

const everyTile = [
  [1, 64],
  [1, 2048],
  [1, 6144],
  [32, 1024],
  [32, 8192],
] as const;

const everyHeadDimension = [16, 32, 64, 72, 80, 96, 128, 192, 256] as const;

/**
 * The mask is a loop of its own, and a dtype one instruction: what they have in common is compiled once, unless
 * ROOFLINE_ALL_KERNELS=1 asks for all.
 */
const all = process.env['ROOFLINE_ALL_KERNELS'] === '1';
const fewerTiles = all ? everyTile : everyTile.slice(-2);
const fewerHeadDimensions = all ? everyHeadDimension : ([64, 128] as const);

/** They take each tile that there is for a head dimension, and each number of blocks that share one. */
const problems: readonly KernelProblem[] = (
  [
    ['bfloat16', true, everyTile, everyHeadDimension],
    ['bfloat16', false, fewerTiles, fewerHeadDimensions],
    ['float16', true, fewerTiles, fewerHeadDimensions],
  ] as const
).flatMap(([dtype, causal, sizes, headDimensions]) =>
  headDimensions.flatMap((headDimension) =>
    sizes.map(([heads, length]) => ({
      ...{
        kernels: 'auto' as const,
        dtype,
        deterministic: false,
        float32Precision: 'highest' as const,
        causal,
        scale: 0.125,
      },
      ...{ batch: 1, heads, keyHeads: heads, queries: length, keys: length, headDimension },
      ...gpu,
    })),
  ),
);

const forwardVariants = distinct(
  problems.map((problem) =>
    hopperForwardDefines({ dtype: problem.dtype, settings: problem }, planHopperForward(problem)!.forward),
  ),
);
describe.skipIf(!foundNvcc)("Hopper's forward kernels compile (needs nvcc)", () => {
  it.each(groupsOf(forwardVariants))('%s', (_, variants) =>
    expectNoSpills('hopper/flash_hopper_forward.cu', variants),
  );
});
