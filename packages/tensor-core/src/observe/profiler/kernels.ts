import type { RecordedActivities } from '@roofline/cuda/parts';
import { DeviceError } from '@roofline/cuda/host';
import { demangle } from './demangle.ts';
import { nodeShares } from './node-shares.ts';
import type { GraphLaunch, OpCall } from './op-recorder.ts';
import type { ProfiledKernel } from './profiled.ts';

/**
 * What CUPTI recorded, each activity with the op that was running on the host when the activity was queued. Reporting every op
 * to CUPTI instead (external correlation ids) would cost as much host time again as everything else that it records.
 * Activities of a graph have the ops of their nodes. Throws a DeviceError if a graph ran differently than it was captured.
 */
export function gpuKernels(recorded: RecordedActivities, calls: readonly OpCall[]): ProfiledKernel[] {
  const { activities, queuedAtMs } = recorded;
  const inGraphs = opsOfGraphs(recorded, calls);
  return activities.map((activity, i) => {
    const { kind, name, startNs, endNs, device, stream, correlationId, byteLength, grid, block } = activity;
    const queuedMs = queuedAtMs.get(correlationId);
    const op = inGraphs.has(i) ? inGraphs.get(i)! : queuedMs === undefined ? null : callAt(calls, queuedMs);
    const branch = op !== null && calls[op]!.isBeside ? ', branch' : '';
    return {
      name: demangle(name),
      kind,
      startUs: startNs / 1000,
      durationUs: (endNs - startNs) / 1000,
      stream: `cuda:${device} stream ${stream}${branch}`,
      op,
      byteLength,
      grid,
      block,
    };
  });
}

/**
 * The ops of activities of graphs, by the index of the activity; null where they are unknown because records were lost. The
 * ids that an instantiated graph gives its nodes are told only to those subscribed to CUPTI at that time, but they follow the
 * order of the capture, which is that of the calls. On branches nodes may run in another.
 */
function opsOfGraphs(
  { activities, queuedAtMs, droppedRecords }: RecordedActivities,
  calls: readonly OpCall[],
): Map<number, number | null> {
  const launches = new Map<number, { readonly graph: GraphLaunch; readonly activities: number[] }>();
  activities.forEach(({ correlationId }, i) => {
    const queuedMs = queuedAtMs.get(correlationId);
    const call = queuedMs === undefined ? null : callAt(calls, queuedMs);
    const graph = call === null ? null : calls[call]!.graph;
    if (!graph) return;
    const launch = launches.get(correlationId);
    if (launch) launch.activities.push(i);
    else launches.set(correlationId, { graph, activities: [i] });
  });
  const ops = new Map<number, number | null>();
  for (const { graph, activities: ran } of launches.values()) {
    const ofNodes = graph.nodes.flatMap((count, i) => Array<number>(count).fill(graph.firstCall + i));
    const isWhole = ran.length === ofNodes.length;
    const captured = ran.toSorted((a, b) => activities[a]!.graphNodeId - activities[b]!.graphNodeId);
    if (!isWhole && droppedRecords === 0) throw otherNodes(graph, ofNodes.length, ran.length);
    captured.forEach((activity, i) => ops.set(activity, isWhole ? ofNodes[i]! : null));
  }
  return ops;
}

function otherNodes({ name }: GraphLaunch, captured: number, ran: number): DeviceError {
  return new DeviceError(
    `profile: the graph of ${name || 'a compiled function'} has ${captured} nodes, and CUPTI recorded ${ran} kernels, ` +
      'copies and fills of one launch, so that none could be told from another; profile the function before compile().',
  );
}

/** Index of the call that was under way at a time; null between calls. Calls do not overlap. */
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
 * On the CPU each node of an op's graph is a kernel. An op has finished when its call returns, and its nodes share that time.
 */
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
