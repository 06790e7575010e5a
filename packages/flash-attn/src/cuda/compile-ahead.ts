import { type CudaContext, DeviceError } from '@roofline/tensor-core';
import { cudaDevice } from '@roofline/tensor-core/native';
import type { KernelProblem } from './kernel-plan.ts';
import { backwardKernels } from './problem-kernels.ts';

const begun = new WeakMap<object, Set<string>>();

/**
 * Has the kernels of a problem's backward pass compiled beside those of its forward pass: they take the compiler longest of
 * all that a language model runs on.
 */
export function compileBackwardAhead(context: CudaContext, problem: KernelProblem): void {
  const device = cudaDevice(context);
  let problems = begun.get(device);
  if (!problems) begun.set(device, (problems = new Set()));
  const key = JSON.stringify(problem);
  if (problems.has(key)) return;
  problems.add(key);
  try {
    device.compileAhead(backwardKernels(problem));
  } catch (error) {
    // This GPU has no kernels for the backward pass, which says so if there is one.
    if (!(error instanceof DeviceError)) throw error;
  }
}
