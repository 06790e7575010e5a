import { DeviceError, type Tensor } from '@roofline/tensor-core';
import { cudaDevice } from '@roofline/tensor-core/kernel-api';
import { autocastOperandDType } from '../dtypes.ts';
import type { AttentionSizes } from '../operands.ts';
import { type ProblemSettings, kernelProblem } from './kernel-problem.ts';
import { backwardKernels } from './problem-kernels.ts';

/** By their devices, the problems whose backward kernels have been begun. */
const begun = new WeakMap<object, Set<string>>();

/**
 * Has the kernels of a call's backward pass compiled in parallel with those of its forward pass: they take the compiler
 * longest of all that a language model runs on. `q` is the caller's. Does nothing on a CPU.
 */
export function compileBackwardAhead(q: Tensor, sizes: AttentionSizes, settings: ProblemSettings): void {
  if (q.device.type !== 'cuda' || q.size === 0) return;
  const device = cudaDevice(q.device);
  const problem = kernelProblem(device.facts, sizes, autocastOperandDType(q.dtype), settings);
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
