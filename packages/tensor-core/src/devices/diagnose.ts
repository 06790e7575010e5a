import { findOnnxRuntime } from './cpu/onnx/find-onnx-runtime.ts';
import { diagnoseCuda, type Diagnosis } from './cuda/diagnose.ts';

/** What the devices need: what of it is found here, what is missing and how to get it. Never throws. */
export function diagnose(): Diagnosis[] {
  return [diagnoseOnnxRuntime(), ...diagnoseCuda()];
}

function diagnoseOnnxRuntime(): Diagnosis {
  const component = 'ONNX Runtime';
  const detail = 'calculates on the CPU';
  try {
    const { path, version } = findOnnxRuntime();
    return { component, status: 'found', detail, path, version };
  } catch (error) {
    return { component, status: 'missing', detail, remedy: (error as Error).message };
  }
}
