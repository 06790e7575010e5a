import { findOnnxRuntime } from '../onnx/find-onnx-runtime.ts';
import { cpuThreads } from '../onnx/threads.ts';
import { type Diagnosis, diagnose as diagnoseCuda } from '@roofline/cuda';

/** What the devices need, and for each whether it is found here or how to get it. Never throws. */
export function diagnose(): Diagnosis[] {
  return [diagnoseOnnxRuntime(), ...diagnoseCuda()];
}

function diagnoseOnnxRuntime(): Diagnosis {
  const component = 'ONNX Runtime';
  const detail = 'calculates on the CPU';
  try {
    const found = { component, detail, ...findOnnxRuntime() };
    const problem = threadsProblem();
    return problem === null
      ? { ...found, status: 'found' }
      : { ...found, status: 'unusable', remedy: problem };
  } catch (error) {
    return { component, status: 'missing', detail, remedy: (error as Error).message };
  }
}

/** Why the CPU cannot start its threads, such as an invalid ROOFLINE_CPU_THREADS; null if it can. */
function threadsProblem(): string | null {
  try {
    cpuThreads();
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}
