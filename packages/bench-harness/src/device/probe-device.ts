import { cudaAvailable, diagnose, RooflineError } from '@roofline/tensor-core';
import type { CellTask } from '../runner/cell-task.ts';
import { describeDevice } from './describe-device.ts';
import type { DiagnosisEntry, ProbeResult } from './diagnosis.ts';

/** Opens a device and describes it, in a process of its own, so that the sweep's process holds none. */
export const probeDevice: CellTask<{ device: string }, Record<string, never>, ProbeResult> = {
  name: 'probe-device',
  measure({ device: spec }) {
    const diagnosis = diagnose().map((entry) => ({ ...entry })) satisfies DiagnosisEntry[];
    if (spec.startsWith('cuda') && !cudaAvailable()) {
      return {
        device: null,
        problem: `There is no usable NVIDIA GPU here, so nothing can run on ${spec}.`,
        diagnosis,
      };
    }
    try {
      return { device: describeDevice(spec), problem: null, diagnosis };
    } catch (error) {
      if (!(error instanceof RooflineError)) throw error;
      return { device: null, problem: error.message, diagnosis };
    }
  },
};
