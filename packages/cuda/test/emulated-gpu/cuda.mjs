// `@roofline/cuda` with an emulated GPU in the place of the first.
import { openEmulatedGpu } from '@roofline/cuda/testing';

export * from '@roofline/cuda';

let gpu = null;

export function openGpu() {
  return (gpu ??= openEmulatedGpu());
}
