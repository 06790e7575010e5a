import type { KernelFusion } from '../../op/cuda-lowering.ts';

/** Of an op that runs by itself: the empty structures of kernels/fusion.cuh. */
export const noFusion: KernelFusion = { kernel: (spec) => spec, argument: new Uint8Array(2) };
