import {
  recordMemory,
  savedForBackward,
  Tensor,
  type Device,
  type MemoryRecord,
  type RecordMemoryOptions,
  type SavedForBackward,
} from '@roofline/tensor-core';
import type { Phase } from '../../measuring/timing.ts';
import type { Workload } from '../e2e/workload.ts';

/** One recorded step: what the allocator did, and what the tape held between forward and backward. */
export interface RecordedStep {
  readonly record: MemoryRecord<void>;
  readonly saved: readonly SavedForBackward[];
  readonly peakAllocatedBytes: number;
  readonly peakReservedBytes: number;
}

export function recordStep(workload: Workload, device: Device, recording: RecordMemoryOptions): RecordedStep {
  let saved: readonly SavedForBackward[] = [];
  const phase: Phase = (name, work) => {
    const result = work();
    if (name === 'forward' && result instanceof Tensor) saved = savedForBackward(result);
    return result;
  };
  device.resetPeakMemory();
  const record = recordMemory(() => workload.step(phase), recording);
  device.synchronize();
  const { peakAllocatedBytes, peakReservedBytes } = device.memoryStatistics();
  return { record, saved, peakAllocatedBytes, peakReservedBytes };
}
