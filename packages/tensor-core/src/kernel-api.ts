// For projects whose `lib` has no Symbol.dispose, which tensors do have.
/// <reference lib="esnext.disposable" preserve="true" />

// What a package that brings kernels of its own needs to know of tensors; the README's section "Kernels and libraries of your
// own" documents it. Kernels, streams, memory and libraries themselves are those of `@roofline/cuda`.

// Launches.
export { computeType, storageType } from './op/kernel-arguments/c-types.ts';
export { denseCopy } from './ops/support/dense-memory.ts';
export {
  type RegisterBudget,
  type RowPlan,
  launchRows,
  rowPlan,
  vectorLength,
} from './ops/support/row-kernel.ts';

// Memory and shapes.
export { sameShape } from './base/shape.ts';
export { type StoredElements, shareMemory } from './tensor/storage/overlap.ts';
export { valueBeyond } from './ops/copy/value-beyond.ts';

// For what is being compiled, or calculated again.
export { currentTrace } from './tensor/tracing.ts';
export { asOneCall, notFollowed } from './op/kept-results.ts';

// The GPU behind a device or a lowering's context.
export { cudaDevice } from './backends/cuda/cuda-device.ts';
export type { CudaDevice } from './backends/cuda/device.ts';
