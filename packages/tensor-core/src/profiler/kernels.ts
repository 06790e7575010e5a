import type { TimedNode } from '../cpu/node-timer.ts';
import type { RecordedActivities } from '../cuda/cupti.ts';
import { demangle } from './demangle.ts';
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

/**
 * On the CPU each node of an op's graph is a kernel, and what runs in JavaScript is one. An op has run when its call
 * returns; its nodes follow each other within that time. `runs` holds the nodes of each run of a graph.
 */
export function cpuKernels(
  calls: readonly OpCall[],
  runs: readonly (readonly TimedNode[])[],
  profileStartMs: number,
): ProfiledKernel[] {
  return calls.flatMap((call, op) => {
    if (call.deviceType === 'cuda') return [];
    const callUs = (call.endMs - call.startMs) * 1000;
    const nodes =
      call.op.cpu.kind === 'host'
        ? [{ opType: `${call.op.name} (JavaScript)`, durationUs: callUs }]
        : sumOverRuns(runs.slice(call.firstRun, call.endRun));
    // ONNX Runtime counts whole microseconds.
    const totalUs = nodes.reduce((sum, { durationUs }) => sum + durationUs, 0);
    const scale = Math.min(1, callUs / totalUs);
    let startUs = (call.startMs - profileStartMs) * 1000;
    return nodes.map(({ opType, durationUs }): ProfiledKernel => {
      const kernel = {
        name: opType,
        kind: 'kernel' as const,
        startUs,
        durationUs: durationUs * scale,
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

/** An op that runs piece by piece takes its nodes once for each piece: they count as one. */
function sumOverRuns(runs: readonly (readonly TimedNode[])[]): TimedNode[] {
  const [first = []] = runs;
  return first.map(({ opType }, node) => ({
    opType,
    durationUs: runs.reduce((sum, run) => sum + run[node]!.durationUs, 0),
  }));
}
