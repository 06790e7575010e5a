import type { RecordedActivities } from '../devices/cuda/profiling/cupti.ts';
import { demangle } from './demangle.ts';
import { nodeShares } from './node-shares.ts';
import type { OpCall } from './op-recorder.ts';
import type { ProfiledKernel } from './profile.ts';

/**
 * What CUPTI recorded, each activity with the op that ran on the host when the activity was queued. Telling CUPTI of
 * every op instead (external correlation ids) costs as much host time again as all else that it records.
 */
export function gpuKernels(
  { activities, queuedAtMs }: RecordedActivities,
  calls: readonly OpCall[],
): ProfiledKernel[] {
  return activities.map((activity) => {
    const { kind, name, startNs, endNs, device, stream, correlationId, byteLength, grid, block } = activity;
    const queuedMs = queuedAtMs.get(correlationId);
    return {
      name: demangle(name),
      kind,
      startUs: startNs / 1000,
      durationUs: (endNs - startNs) / 1000,
      stream: `cuda:${device} stream ${stream}`,
      op: queuedMs === undefined ? null : callAt(calls, queuedMs),
      byteLength,
      grid,
      block,
    };
  });
}

/** Index of the call that was under way at a time; null between calls. Calls follow each other. */
function callAt(calls: readonly OpCall[], timeMs: number): number | null {
  let [first, behind] = [0, calls.length];
  while (first < behind) {
    const middle = (first + behind) >> 1;
    if (calls[middle]!.startMs <= timeMs) first = middle + 1;
    else behind = middle;
  }
  const call = first - 1;
  return call >= 0 && timeMs <= calls[call]!.endMs ? call : null;
}

/** On the CPU each node of an op's graph is a kernel. An op has run when its call returns: its nodes divide that time. */
export function cpuKernels(calls: readonly OpCall[], profileStartMs: number): ProfiledKernel[] {
  return calls.flatMap((call, op) => {
    if (call.deviceType === 'cuda') return [];
    const callUs = (call.endMs - call.startMs) * 1000;
    let startUs = (call.startMs - profileStartMs) * 1000;
    return nodeShares(call).map(({ opType, share }): ProfiledKernel => {
      const kernel = {
        name: opType,
        kind: 'kernel' as const,
        startUs,
        durationUs: share * callUs,
        stream: call.deviceLabel,
        op,
        byteLength: null,
        grid: null,
        block: null,
      };
      startUs += kernel.durationUs;
      return kernel;
    });
  });
}
