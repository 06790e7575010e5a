import { ReopenedRanges } from '../../../op/reopened-ranges.ts';
import { withOperands } from '../../../program/interpreter.ts';
import type { Call } from '../../../program/program.ts';
import type { ProgramMemory } from '../../../program/program-memory.ts';
import { KernelPostponed } from '../compile/compile.ts';
import type { CudaDevice } from '../device.ts';
import type { MemoryPool } from '../memory/memory-pool.ts';
import type { Arena, WorkspaceBytes } from './arena.ts';
import { CudaGraph } from './cuda-graph.ts';
import type { CudaProgramParts } from './cuda-program-parts.ts';
import { LiveCalls } from './live-calls.ts';

/** A program's calls as one graph. */
export interface CapturedCalls {
  readonly graph: CudaGraph;
  readonly live: LiveCalls;
  /** How many of the graph's nodes each call is. */
  readonly nodes: readonly number[];
  /** What the calls have asked for. */
  readonly workspaces: WorkspaceBytes;
}

/** Where a graph works. */
interface Place {
  readonly memory: ProgramMemory;
  readonly arena: Arena;
  readonly arenaAddress: number;
  /** Where workspaces come from that the arena has no gap for. */
  readonly pool: MemoryPool;
}

/** Captures calls on the current stream, in their order. */
export function captureCalls(calls: readonly Call[], parts: CudaProgramParts, place: Place): CapturedCalls {
  const { device, builder } = parts;
  return device.withPool(place.pool, () => {
    // Kernels that are still to be compiled are compiled all at once: a capture that postpones them tells which those are, and
    // the next one has them.
    for (;;) {
      const captured = builder.postpone(() => captureUnlessPostponed(calls, parts, place));
      if (captured) return captured;
      place.pool.emptyCache();
    }
  });
}

/** Null if kernels of some of the calls were postponed. */
function captureUnlessPostponed(
  calls: readonly Call[],
  parts: CudaProgramParts,
  { memory, arena, arenaAddress }: Place,
): CapturedCalls | null {
  const { device, driver, lowering } = parts;
  const live = new LiveCalls(parts);
  const ranges = new ReopenedRanges();
  const nodes: number[] = [];
  const asked = new Map<number, readonly number[]>();
  let postponed: KernelPostponed | null = null;
  let captured = 0;
  const captureOne = (call: Call, at: number) => {
    const workspaces = arena.workspacesOf(at, arenaAddress);
    lowering.spareMemory = (byteLength) =>
      // Nothing of this capture will run: it takes no memory that the one to come might not.
      postponed ? { address: arenaAddress, byteLength } : workspaces.take(byteLength);
    if (call.live === null) captureCall(device, call, memory, ranges);
    else live.capture(call, memory, () => captureCall(device, call, memory, ranges));
    if (workspaces.asked.length > 0) asked.set(at, workspaces.asked);
    for (const { offset, byteLength } of [...workspaces.taken, ...arena.freedBehind(at)])
      device.discard(arenaAddress + offset, byteLength);
    const before = captured;
    captured = CudaGraph.capturedNodes(driver, device.stream);
    nodes.push(captured - before);
  };
  const captureAll = () => {
    for (const [at, call] of calls.entries()) {
      try {
        captureOne(call, at);
      } catch (error) {
        if (!(error instanceof KernelPostponed)) throw error;
        postponed = error;
      }
    }
    if (postponed) throw postponed;
  };
  try {
    return { graph: CudaGraph.capture(driver, device.stream, captureAll), live, nodes, workspaces: asked };
  } catch (error) {
    if (error instanceof KernelPostponed) return null;
    throw error;
  } finally {
    lowering.spareMemory = null;
  }
}

/** Queues a call on a stream that is captured. Observers are not told: nothing runs yet. */
export function captureCall(
  device: CudaDevice,
  call: Call,
  memory: ProgramMemory,
  ranges: ReopenedRanges,
): void {
  withOperands(call, memory, (inputs, outputs) =>
    ranges.run(call.range, () => device.run(call.op, inputs, outputs, call.attributes as never)),
  );
}
