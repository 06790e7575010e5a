import { CompileError } from '../../base/errors.ts';
import type { CpuLowering } from '../../op/cpu-lowering.ts';
import type { CustomKernel } from '../../op/cuda-lowering.ts';
import type { ComputeOp } from '../../op/op.ts';

/** The CPU lowering of an op that only passes make: it throws a CompileError. */
export function onlyOnGpus(name: string): CpuLowering<never> {
  return {
    kind: 'host',
    run() {
      throw new CompileError(`${name}: made for GPUs alone; run the graph that it comes from.`);
    },
  };
}

/** An op that only passes make. */
export function gpuOp(
  name: string,
  launch: CustomKernel<never>['launch'],
): ComputeOp<never> & { readonly cuda: CustomKernel<never> } {
  return {
    kind: 'compute',
    name,
    autocast: 'none',
    infer: () => [],
    cuda: { kind: 'custom', launch },
    cpu: onlyOnGpus(name),
  };
}
