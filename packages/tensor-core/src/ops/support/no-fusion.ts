import type { KernelEdges } from '../../op/cuda-lowering.ts';

/** Of an op that runs by itself: the empty structures of kernels/fusion.cuh. */
export const noEdges: KernelEdges = { kernel: (spec) => spec, argument: new Uint8Array(2) };
