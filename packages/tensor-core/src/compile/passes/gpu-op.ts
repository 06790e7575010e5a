import { CompileError } from '../../base/errors.ts';
import type { CpuLowering } from '../../op/cpu-lowering.ts';
import type { CustomKernel } from '../../op/cuda-lowering.ts';
import type { ComputeOp } from '../../op/op.ts';

/** The CPU's side of an op that only these passes make. */
export function gpusAlone(name: string): CpuLowering<never> {
  return {
    kind: 'host',
    run() {
      throw new CompileError(`${name}: made for GPUs alone; run the graph that it comes from.`);
    },
  };
}

/** An op of these passes alone. */
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
    cpu: gpusAlone(name),
  };
}
