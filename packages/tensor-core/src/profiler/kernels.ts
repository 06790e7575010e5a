import type { RecordedActivities } from '../cuda/cupti.ts';
import { demangle } from './demangle.ts';
import { OnnxNames } from './onnx-name.ts';
import type { OpCall } from './op-recorder.ts';
import type { ProfiledKernel } from './profile.ts';

/** What CUPTI recorded, each activity with the op whose mark its API call was made under. */
export function gpuKernels({ activities, externalIds }: RecordedActivities): ProfiledKernel[] {
  return activities.map((activity) => {
    const { kind, name, startNs, endNs, device, stream, correlationId, byteLength, grid, block } = activity;
    // A mark lasts until the next; copies between host and device are made between ops.
    const op = kind === 'memcpy' ? null : (externalIds.get(correlationId) ?? null);
    return {
      name: demangle(name),
      kind,
      startUs: startNs / 1000,
      durationUs: (endNs - startNs) / 1000,
      stream: `cuda:${device} stream ${stream}`,
      op,
      byteLength,
      grid,
      block,
    };
  });
}

/** On the CPU an op has run when its call returns: each call is a kernel. */
export function cpuKernels(calls: readonly OpCall[], profileStartMs: number): ProfiledKernel[] {
  const names = new OnnxNames();
  return calls.flatMap((call, op) =>
    call.deviceType === 'cuda'
      ? []
      : [
          {
            name: names.nameOf(call),
            kind: 'kernel' as const,
            startUs: (call.startMs - profileStartMs) * 1000,
            durationUs: (call.endMs - call.startMs) * 1000,
            stream: call.deviceLabel,
            op,
            byteLength: null,
            grid: null,
            block: null,
          },
        ],
  );
}
