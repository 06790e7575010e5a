import { ReopenedRanges } from '../../tensor/ranges/reopened-ranges.ts';
import { withOperands } from '../executable/interpreter.ts';
import type { Call } from '../graph/graph.ts';
import type { RunMemory } from '../executable/run-memory.ts';
import { CudaGraph, KernelPostponed } from '@roofline/cuda/parts';
import type { MemoryPool } from '@roofline/cuda';
import type { CudaDevice } from '../../backends/cuda/device.ts';
import type { Arena, WorkspaceBytes } from './arena.ts';
import type { DeviceInternals } from '../../backends/cuda/device.ts';
import type { CallRecorder } from '../../backends/cuda/lower.ts';
import { PerRunCalls } from './per-run-calls.ts';

/** Calls captured as one CUDA graph. */
export interface CapturedCalls {
  readonly graph: CudaGraph;
  readonly live: PerRunCalls;
  /** How many of the CUDA graph's nodes each call is. */
  readonly nodes: readonly number[];
  /** What the calls asked for. */
  readonly workspaces: WorkspaceBytes;
}

/** The memory that a CUDA graph works on. */
interface Place {
  readonly memory: RunMemory;
  readonly arena: Arena;
  readonly arenaAddress: number;
  /** For workspaces that do not fit into gaps of the arena. */
  readonly pool: MemoryPool;
}

/** Captures calls, in their order, on the current stream. */
export function captureCalls(calls: readonly Call[], parts: DeviceInternals, place: Place): CapturedCalls {
  const { device, builder } = parts;
  return device.withPool(place.pool, () => {
    // Kernels that are not compiled yet are compiled all at once: a capture that postpones them finds out which those are, and
    // the next capture has them.
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
  parts: DeviceInternals,
  place: Place,
): CapturedCalls | null {
  const { device, driver } = parts;
  const capture = new Capture(parts, place);
  try {
    const graph = CudaGraph.capture(driver, device.stream, () => capture.queueAll(calls));
    const { live, nodes, workspaces } = capture;
    return { graph, live, nodes, workspaces };
  } catch (error) {
    if (error instanceof KernelPostponed) return null;
    throw error;
  }
}

/** One capture of calls: gathers what there is besides the CUDA graph. */
class Capture implements Omit<CapturedCalls, 'graph'> {
  readonly live: PerRunCalls;
  readonly nodes: number[] = [];
  readonly workspaces = new Map<number, readonly number[]>();
  readonly #parts: DeviceInternals;
  readonly #place: Place;
  readonly #ranges = new ReopenedRanges();
  /** Nodes of the calls so far. */
  #nodeCount = 0;
  #postponed: KernelPostponed | null = null;

  constructor(parts: DeviceInternals, place: Place) {
    this.live = new PerRunCalls(parts);
    this.#parts = parts;
    this.#place = place;
  }

  /** Queues calls on the stream under capture. If some throw a KernelPostponed, throws it after the last call. */
  queueAll(calls: readonly Call[]): void {
    for (const [at, call] of calls.entries()) {
      try {
        this.#queue(call, at);
      } catch (error) {
        if (!(error instanceof KernelPostponed)) throw error;
        this.#postponed = error;
      }
    }
    if (this.#postponed) throw this.#postponed;
  }

  #queue(call: Call, at: number): void {
    const { device, driver, lowering } = this.#parts;
    const { memory, arena, arenaAddress } = this.#place;
    const workspaces = arena.workspacesOf(at, arenaAddress);
    const recorder: CallRecorder = {
      ...(call.live !== null && this.live.recorderOf(call, memory)),
      workspaceFor: (byteLength) =>
        // After a postponed kernel nothing of this capture will run, so it takes no memory that the next one might not.
        this.#postponed ? { address: arenaAddress, byteLength } : workspaces.take(byteLength),
    };
    lowering.record(recorder, () => captureCall(device, call, memory, this.#ranges));
    this.workspaces.set(at, workspaces.asked);
    for (const { offset, byteLength } of [...workspaces.taken, ...arena.freedAfter(at)])
      device.discard(arenaAddress + offset, byteLength);
    const nodeCount = CudaGraph.capturedNodes(driver, device.stream);
    this.nodes.push(nodeCount - this.#nodeCount);
    this.#nodeCount = nodeCount;
  }
}

/** Queues a call on a stream under capture. Observers do not see it: nothing runs yet. */
export function captureCall(device: CudaDevice, call: Call, memory: RunMemory, ranges: ReopenedRanges): void {
  withOperands(call, memory, (inputs, outputs) =>
    ranges.run(call.range, () => device.run(call.op, inputs, outputs, call.attributes as never)),
  );
}
