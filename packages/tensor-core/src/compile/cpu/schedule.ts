import { isIntermediate } from '../graph/liveness.ts';
import type { Call, Program } from '../graph/graph.ts';
import { checksValues, hoistUpdates } from './hoist-updates.ts';
import { type Segment, SegmentBuilder, fitsInGraph } from './segment-builder.ts';

/** What a program does in one go: a graph of several calls, or a call that no graph can hold. */
export interface Step {
  readonly calls: readonly Call[];
  /** Null for a call that runs by itself. */
  readonly segment: Segment | null;
}

/** A step before all are known: a graph under way. */
interface Draft {
  readonly calls: readonly Call[];
  readonly builder: SegmentBuilder | null;
}

/**
 * The program's calls in as few steps as their order allows, updates as early as they can be. One graph of all would be no
 * faster: of a step of 1.6 s (small's sizes, three layers, one thread) all that is not inside the graphs, embeddings in
 * JavaScript included, takes about 1 %. And ONNX Runtime orders the nodes of a graph itself, while the place of an update
 * decides how many gradients there are at a time, and that no parameter is written before its last reader.
 */
export function stepsOf(program: Program): Step[] {
  const drafts = hoistUpdates(draftsOf(program), program.storages, ({ builder }) => builder === null);
  const isNeeded = neededBehind(program, drafts);
  return drafts.map(({ calls, builder }, i) => ({
    calls,
    segment: builder && builder.finish((storage) => isNeeded(storage, i)),
  }));
}

function draftsOf({ calls, storages }: Program): Draft[] {
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
    // What has nothing to do with the graph under way goes before it, unless it might throw before what eager code has written.
    const writesSooner = checksValues(call) && builder.calls.some(writesGiven);
    if (writesSooner || !builder.isIndependentOf(call)) finish();
    drafts.push({ calls: [call], builder: null });
  }
  finish();
  return drafts;
}

/** Whether a storage is read behind a step, or outlives the run. */
function neededBehind(
  program: Program,
  drafts: readonly Draft[],
): (storage: number, step: number) => boolean {
  const lastReads = new Map<number, number>();
  drafts.forEach(({ calls }, i) => {
    for (const { inputs } of calls) for (const { storage } of inputs) lastReads.set(storage, i);
  });
  return (storage, step) => !isIntermediate(program, storage) || (lastReads.get(storage) ?? -1) > step;
}
