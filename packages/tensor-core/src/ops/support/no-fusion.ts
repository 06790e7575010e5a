import type { KernelFusion } from '../../op/kernel-rewrites.ts';

/** No prologue and no epilogue: the two empty structures of kernels/fusion.cuh. */
export const noFusion: KernelFusion = { kernel: (spec) => spec, argument: new Uint8Array(2) };
