import type { CompilableKernel } from '@roofline/cuda';
import { hopperBackwardKernels } from './hopper/hopper-backward.ts';
import { hopperForwardKernels } from './hopper/hopper-forward.ts';
import { planBackward, planForward } from './kernel-plan.ts';
import type { KernelProblem } from './kernel-problem.ts';
import { mmaBackwardKernels, mmaForwardKernels } from './mma/mma-kernels.ts';
import { simtBackwardKernels, simtForwardKernels } from './simt/simt-kernels.ts';

/**
 * What must be compiled for the forward pass of a problem and its backward pass: the files and macros of all kernels that
 * they launch, each once. Throws as `planForward` does.
 */
export function problemKernels(problem: KernelProblem): CompilableKernel[] {
  const byText = new Map(
    [...forwardKernels(problem), ...backwardKernels(problem)].map(({ source, defines = {} }) => [
      JSON.stringify([source.href, defines]),
      { source, defines },
    ]),
  );
  return [...byText.values()];
}

function forwardKernels(problem: KernelProblem): CompilableKernel[] {
  const call = callOf(problem);
  // As the launch has it: every forward kernel gives the same bits twice.
  const plan = planForward({ ...problem, deterministic: false });
  if (plan.family === 'hopper') return hopperForwardKernels(call, plan);
  return plan.family === 'mma' ? mmaForwardKernels(call, plan) : simtForwardKernels(call, plan);
}

/** What its backward pass alone launches. */
export function backwardKernels(problem: KernelProblem): CompilableKernel[] {
  const call = callOf(problem);
  const plan = planBackward(problem);
  if (plan.family === 'hopper') return hopperBackwardKernels(call, plan);
  return plan.family === 'mma' ? mmaBackwardKernels(call, plan) : simtBackwardKernels(call, plan);
}

function callOf(problem: KernelProblem) {
  return { dtype: problem.dtype, sizes: problem, settings: problem };
}
