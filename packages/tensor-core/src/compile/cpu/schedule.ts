import { isIntermediate } from '../graph/liveness.ts';
import type { Call, Graph } from '../graph/graph.ts';
import { hoistUpdates, mayThrow } from './hoist-updates.ts';
import { type Segment, SegmentBuilder, fitsInGraph } from './segment-builder.ts';

/** One ONNX graph of several calls, or a call that no ONNX graph can hold. */
export interface Step {
  readonly calls: readonly Call[];
  /** The ONNX graph; null for a call that runs by itself. */
  readonly segment: Segment | null;
}

/** A step whose outputs are not known yet. */
interface Draft {
  readonly calls: readonly Call[];
  readonly builder: SegmentBuilder | null;
}

/**
 * The graph's calls in as few steps as their order allows, with updates as early as possible. One ONNX graph for everything
 * would be no faster: of a training step of 1.6 s (small's sizes, three layers, one thread) all that is outside the ONNX
 * graphs, embeddings in JavaScript included, takes about 1 %. And ONNX Runtime orders the nodes of a graph itself, whereas
 * the place of an update decides how many gradients are alive at a time and must come after the last reader of its parameter.
 */
export function scheduleSteps(graph: Graph): Step[] {
  const drafts = hoistUpdates(draftsOf(graph), graph.storages, ({ builder }) => builder === null);
  const isNeeded = neededAfter(graph, drafts);
  return drafts.map(({ calls, builder }, i) => ({
    calls,
    segment: builder && builder.finish((storage) => isNeeded(storage, i)),
  }));
}

function draftsOf({ calls, storages }: Graph): Draft[] {
  const drafts: Draft[] = [];
  let builder = new SegmentBuilder(storages);
  const writesGiven = ({ outputs }: Call) =>
    outputs.some(({ storage }) => storages[storage]!.source.kind !== 'made');
  const finish = () => {
    if (builder.calls.length > 0) drafts.push({ calls: builder.calls, builder });
    builder = new SegmentBuilder(storages);
  };
  for (const call of calls) {
    const lowering = fitsInGraph(call, storages);
    if (lowering) {
      builder.add(call, lowering);
      continue;
    }
    // An independent call goes before the ONNX graph under way, unless it might throw: eager code has written more by then.
    const writesSooner = mayThrow(call) && builder.calls.some(writesGiven);
    if (writesSooner || !builder.isIndependentOf(call)) finish();
    drafts.push({ calls: [call], builder: null });
  }
  finish();
  return drafts;
}

/** Whether a storage is read after a step, or outlives the run. */
function neededAfter(graph: Graph, drafts: readonly Draft[]): (storage: number, step: number) => boolean {
  const lastReads = new Map<number, number>();
  drafts.forEach(({ calls }, i) => {
    for (const { inputs } of calls) for (const { storage } of inputs) lastReads.set(storage, i);
  });
  return (storage, step) => !isIntermediate(graph, storage) || (lastReads.get(storage) ?? -1) > step;
}
