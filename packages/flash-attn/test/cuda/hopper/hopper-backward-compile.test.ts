import { describe, it } from 'vitest';
import { foundNvcc } from '../../../../../tooling/nvcc.ts';
import {
  hopperBackwardDefines,
  hopperBackwardRowsDefines,
} from '../../../src/cuda/hopper/hopper-backward.ts';
import { planHopperBackward } from '../../../src/cuda/hopper/hopper-backward-plan.ts';
import type { KernelProblem } from '../../../src/cuda/kernel-problem.ts';
import { distinct } from '../nvcc.ts';
import { expectNoSpills, groupsOf } from './compile-for-hopper.ts';

const variants = [64, 80, 96, 128, 40, 72, 112].flatMap((headDimension) =>
  [true, false].flatMap((causal) =>
    [true, false].flatMap((deterministic) =>
      [256, 8192].map((length) => {
        const dtype = deterministic === causal ? ('bfloat16' as const) : ('float16' as const);
        const sizes = { batch: 1, heads: 16, keyHeads: 16, queries: length, keys: length, headDimension };
        const settings = { causal, scale: 0.125 };
        const problem: KernelProblem = {
          ...{ kernels: 'auto', dtype, deterministic, float32Precision: 'highest', ...sizes, ...settings },
          ...{ computeCapability: 90, multiprocessors: 132, maxSharedBytesPerBlock: 227 * 1024 },
        };
        return { tile: planHopperBackward(problem)!.backward, call: { dtype, sizes, settings } };
      }),
    ),
  ),
);

describe.skipIf(!foundNvcc)("Hopper's backward kernels compile (needs nvcc)", () => {
  const products = distinct(variants.map(({ tile, call }) => hopperBackwardDefines(call, tile)));
  it.each(groupsOf(products))('%s', (_, some) => expectNoSpills('hopper/flash_hopper_backward.cu', some));

  const rows = distinct(variants.map(({ tile, call }) => hopperBackwardRowsDefines(call, tile)));
  it.each(groupsOf(rows))('what goes before and after: %s', (_, some) =>
    expectNoSpills('hopper/flash_hopper_backward_rows.cu', some),
  );
});
