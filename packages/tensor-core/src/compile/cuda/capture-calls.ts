import { ReopenedRanges } from '../../tensor/ranges/reopened-ranges.ts';
import { withOperands } from '../executable/interpreter.ts';
import type { Call } from '../graph/graph.ts';
import type { RunMemory } from '../executable/run-memory.ts';
import { type Block, CudaGraph, KernelPostponed } from '@roofline/cuda/parts';
import type { CudaStream, MemoryPool } from '@roofline/cuda';
import type { CudaDevice } from '../../backends/cuda/device.ts';
import type { Arena, WorkspaceBytes } from './arena.ts';
import type { PlacedPart } from './arena-plan.ts';
import { multiprocessorsBeside } from './branch-rules.ts';
import { type Branches, laneOf, spanOf } from './branches.ts';
import { BranchStream } from './branch-stream.ts';
import type { DeviceInternals } from '../../backends/cuda/device.ts';
import type { CallRecorder } from '../../backends/cuda/lower.ts';
import { type MultiprocessorShare, PerRunCalls } from './per-run-calls.ts';

/** Calls captured as one CUDA graph. */
export interface CapturedCalls {
  readonly graph: CudaGraph;
  readonly live: PerRunCalls;
  /** How many kernels, copies and fills of the CUDA graph each call is. */
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

/** Captures calls, in their order, on the current stream, and those that run beside others on another one. */
export function captureCalls(
  calls: readonly Call[],
  branches: Branches,
  parts: DeviceInternals,
  place: Place,
): CapturedCalls {
  const { device, builder } = parts;
  return device.withPool(place.pool, () => {
    // Kernels that are not compiled yet are compiled all at once: a capture that postpones them finds out which those are, and
    // the next capture has them.
    for (;;) {
      const captured = builder.postpone(() => captureUnlessPostponed(calls, branches, parts, place));
      if (captured) return captured;
      place.pool.emptyCache();
    }
  });
}

/** Null if kernels of some of the calls were postponed. */
function captureUnlessPostponed(
  calls: readonly Call[],
  branches: Branches,
  parts: DeviceInternals,
  place: Place,
): CapturedCalls | null {
  const { device, driver } = parts;
  const capture = new Capture(parts, branches, place);
  try {
    const graph = CudaGraph.capture(driver, device.stream, () => capture.queueAll(calls));
    const { live, nodes, workspaces } = capture;
    return { graph, live, nodes: activitiesOf(graph, nodes), workspaces };
  } catch (error) {
    if (error instanceof KernelPostponed) return null;
    throw error;
  }
}

/** Of the nodes of each call those that are kernels, copies and fills. */
function activitiesOf(graph: CudaGraph, nodes: readonly number[]): number[] {
  const areActivities = graph.areActivities();
  let end = 0;
  return nodes.map((count) => areActivities.slice(end, (end += count)).filter(Boolean).length);
}

/** One capture of calls: gathers what there is besides the CUDA graph. */
class Capture implements Omit<CapturedCalls, 'graph' | 'nodes'> {
  readonly live: PerRunCalls;
  /** How many nodes of any kind each call is. */
  readonly nodes: number[] = [];
  readonly workspaces = new Map<number, readonly number[]>();
  readonly #parts: DeviceInternals;
  readonly #branches: Branches;
  readonly #place: Place;
  /** The one that the capture began on. */
  readonly #stream: CudaStream;
  readonly #ranges = new ReopenedRanges();
  /** Workspaces of calls that the chain has not waited for yet. */
  #taken: PlacedPart[] = [];
  /** Calls after which memory has been given back. */
  #freed = 0;
  /** How many multiprocessors calls with ordered effects, which may be under way, take from the chain. */
  #takenByEffects = 0;
  /** Nodes of the calls so far. */
  #nodeCount = 0;
  #postponed: KernelPostponed | null = null;

  constructor(parts: DeviceInternals, branches: Branches, place: Place) {
    this.live = new PerRunCalls(parts);
    this.#parts = parts;
    this.#branches = branches;
    this.#place = place;
    this.#stream = parts.device.stream;
  }

  /** Queues calls on the stream under capture. If some throw a KernelPostponed, throws it after the last call. */
  queueAll(calls: readonly Call[]): void {
    const { device } = this.#parts;
    const lanes = {
      beside: new BranchStream(device, this.#branches, 'beside'),
      ordered: new BranchStream(device, this.#branches, 'ordered'),
    };
    const join = (at: number) => {
      lanes.beside.join(at);
      lanes.ordered.join(at);
    };
    for (const [at, call] of calls.entries()) {
      join(at);
      if (!lanes.ordered.isUnderWay) this.#takenByEffects = 0;
      this.#giveBack(at);
      const lane = laneOf(this.#branches, at);
      const queue = () => this.#queue(call, at);
      try {
        if (lane === 'chain') queue();
        else lanes[lane].run(at, queue);
        if (lane === 'ordered') this.#takenByEffects = Math.max(this.#takenByEffects, takenBy(call));
      } catch (error) {
        if (!(error instanceof KernelPostponed)) throw error;
        this.#postponed = error;
      }
    }
    join(calls.length);
    this.#giveBack(calls.length);
    if (this.#postponed) throw this.#postponed;
  }

  /** For the memory, the whole graph uses it on the stream that it is launched on. */
  readonly #queueBeside: Queue = (op, inputs, outputs, attributes) => {
    for (const { storage } of [...inputs, ...outputs]) (storage.buffer as Block).usedBy(this.#stream);
    this.#parts.lowering.run(op, inputs, outputs, attributes);
  };

  /** Ends the call before `end`: discards what neither later calls need nor those still running, and counts its nodes. */
  #giveBack(end: number): void {
    const { arena, arenaAddress } = this.#place;
    for (; this.#freed < end; this.#freed++) {
      const ended = this.#taken.filter(({ last }) => last === this.#freed);
      for (const { offset, byteLength } of [...ended, ...arena.freedAfter(this.#freed)])
        this.#parts.device.discard(arenaAddress + offset, byteLength);
    }
    this.#taken = this.#taken.filter(({ last }) => last >= end);
    if (end > 0) this.nodes.push(this.#newNodes());
  }

  /** How many nodes there are since the last question. */
  #newNodes(): number {
    const { device, driver } = this.#parts;
    const before = this.#nodeCount;
    this.#nodeCount = CudaGraph.capturedNodes(driver, device.stream);
    return this.#nodeCount - before;
  }

  /** Of a call on a branch, and of one in the chain beside calls with ordered effects. */
  #shareOf(at: number): MultiprocessorShare {
    const { properties } = this.#parts.lowering;
    if (this.#branches.has(at)) return { multiprocessors: multiprocessorsBeside(properties) };
    if (this.#takenByEffects === 0) return {};
    return { multiprocessorsLeft: Math.max(1, properties.multiprocessors - this.#takenByEffects) };
  }

  #queue(call: Call, at: number): void {
    const { device, lowering } = this.#parts;
    const { memory, arena, arenaAddress } = this.#place;
    const workspaces = arena.workspacesOf(at, arenaAddress, this.#taken);
    const share = this.#shareOf(at);
    const recorder: CallRecorder = {
      ...share,
      ...(call.live !== null && this.live.recorderOf(call, memory, share)),
      workspaceFor: (byteLength) =>
        // After a postponed kernel nothing of this capture will run, so it takes no memory that the next one might not.
        this.#postponed ? { address: arenaAddress, byteLength } : workspaces.take(byteLength),
    };
    const queue: Queue = (...given) =>
      this.#branches.has(at) ? this.#queueBeside(...given) : device.run(...given);
    lowering.record(recorder, () => captureCall(call, memory, this.#ranges, queue));
    this.workspaces.set(at, workspaces.asked);
    this.#taken.push(...workspaces.taken.map((gap) => ({ ...gap, ...spanOf(this.#branches, at) })));
  }
}

/** How many multiprocessors a call with ordered effects takes. */
function takenBy({ op, attributes }: Call): number {
  return op.effects?.orderOf(attributes as never).multiprocessors ?? 0;
}

/** How a call reaches the stream under capture. */
type Queue = Pick<CudaDevice, 'run'>['run'];

/** Queues a call on a stream under capture. Observers do not see it: nothing runs yet. */
export function captureCall(call: Call, memory: RunMemory, ranges: ReopenedRanges, queue: Queue): void {
  withOperands(call, memory, (inputs, outputs) =>
    ranges.run(call.range, () => queue(call.op, inputs, outputs, call.attributes as never)),
  );
}
