import type { PeerStepProfile } from '../../../peer/step-peer.ts';
import type { TimedKernel } from '../kernel-spans.ts';

/** A kernel that PyTorch ran; on the CPU an aten op with its self time. Its phase is the only range it knows. */
export type PeerKernel = TimedKernel;

/** Puts the lists of all steps together again. */
export function peerKernels(steps: readonly PeerStepProfile[]): PeerKernel[] {
  return steps.flatMap(({ strings, kernels }, step) =>
    kernels.name.map((name, i): PeerKernel => {
      const phase = kernels.phase[i]!;
      return {
        name: strings[name]!,
        step,
        durationUs: kernels.durationUs[i]!,
        ranges: phase < 0 ? [] : [{ name: strings[phase]!, step, index: phase }],
      };
    }),
  );
}

const gpuProduct = /gemm|gemv|cutlass|xmma|nvjet|cublas|splitK/i;
const cpuProduct = /^aten::(_?addmm|addbmm|addmv|baddbmm|bmm|dot|einsum|linear|matmul|mm|mv)$/;

/** How to recognise a matrix product among PyTorch's kernels, for descriptions of columns. */
export const PRODUCT_NAMES =
  "PyTorch's products are recognised by name: gemm, gemv, cutlass, xmma, nvjet, cublas or splitK in it; on the CPU " +
  'aten::mm, bmm, addmm, baddbmm, matmul, linear and their like.';

export function isPeerProduct({ name }: Pick<PeerKernel, 'name'>): boolean {
  return name.startsWith('aten::') ? cpuProduct.test(name) : gpuProduct.test(name);
}
