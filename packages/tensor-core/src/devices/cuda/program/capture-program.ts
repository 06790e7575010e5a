import { reopenRange } from '../../../op/range.ts';
import { withOperands } from '../../../program/interpreter.ts';
import { type Call, type Program, attributesOf } from '../../../program/program.ts';
import type { ProgramMemory } from '../../../program/program-memory.ts';
import type { DeviceBuffer } from '../../device.ts';
import type { CudaStream } from '../driver/stream.ts';
import type { Block } from '../memory/block.ts';
import type { Gap } from './arena-plan.ts';
import type { Arena } from './arena.ts';
import { BranchedCapture } from './branches/branched-capture.ts';
import type { Branches } from './branches/branches.ts';
import { MemoryUses } from './branches/memory-uses.ts';
import { CudaGraph } from './cuda-graph.ts';
import { type LiveCallParts, LiveCalls } from './live-calls.ts';

/** What is captured, and where its memory lies. */
export interface CaptureRequest {
  readonly program: Program;
  readonly branches: Branches;
  readonly memory: ProgramMemory;
  readonly arena: Arena;
  readonly arenaAddress: number;
  /** Live attributes, in the order of `Program.live`. */
  readonly attributes: readonly unknown[];
}

/** A program's graph. */
export interface CapturedProgram {
  readonly graph: CudaGraph;
  readonly live: LiveCalls;
  /** How many of the graph's nodes each call is. */
  readonly nodes: readonly number[];
}

/** Captures a program on the current stream and streams beside it, with memory from the current pool. */
export function captureProgram(parts: LiveCallParts, request: CaptureRequest): CapturedProgram {
  const live = new LiveCalls(parts);
  const nodes: number[] = [];
  const graph = CudaGraph.capture(parts.driver, parts.device.stream, () =>
    new ProgramCapture(parts, request, live).captureCalls(nodes),
  );
  return { graph, live, nodes };
}

/** Queues a call on a stream. Observers are not told: nothing runs yet. */
export function queueCall(
  { device, lowering }: LiveCallParts,
  call: Call,
  memory: ProgramMemory,
  attributes: unknown,
  stream: CudaStream = device.stream,
): void {
  withOperands(call, memory, (inputs, outputs) => {
    const queue = () => lowering.run(call.op, inputs, outputs, attributes as never);
    reopenRange(call.range, () => (stream === device.stream ? queue() : device.onStream(stream, queue)));
  });
}

class ProgramCapture {
  readonly #parts: LiveCallParts;
  readonly #request: CaptureRequest;
  readonly #live: LiveCalls;
  readonly #chain: CudaStream;
  readonly #branched: BranchedCapture;
  readonly #uses = new MemoryUses();
  /** What of workspaces has found no room in the arena; the branches share it. */
  readonly #spilled: Block[] = [];

  constructor(parts: LiveCallParts, request: CaptureRequest, live: LiveCalls) {
    this.#parts = parts;
    this.#request = request;
    this.#live = live;
    this.#chain = parts.device.stream;
    const { count, ofCalls } = request.branches;
    // A fill between two uses of memory would order them, and hide where a wait between them is missing.
    if (count > 1) parts.device.discard(request.arenaAddress, request.arena.byteLength);
    this.#branched = new BranchedCapture(ofCalls, [
      this.#chain,
      ...parts.streams.beside(this.#chain, count - 1),
    ]);
  }

  /** Notes how many nodes each call is. */
  captureCalls(nodes: number[]): void {
    const { driver } = this.#parts;
    let captured = 0;
    const newNodes = () => {
      const before = captured;
      captured = CudaGraph.capturedNodes(driver, this.#chain);
      return captured - before;
    };
    try {
      this.#request.program.calls.forEach((call, i) => {
        this.#capture(call, i);
        nodes.push(newNodes());
      });
    } catch (error) {
      try {
        this.#end();
      } catch {
        // CUDA has ended the capture itself: why, the first error says.
      }
      throw error;
    }
    this.#end();
    // Fills of what was spilled, where tests ask for them.
    if (nodes.length > 0) nodes[nodes.length - 1]! += newNodes();
  }

  #capture(call: Call, i: number): void {
    const { attributes, memory, branches } = this.#request;
    const stream = this.#branched.streamOf(i);
    this.#branched.waitFor(i, branches.dependencies[i]!);
    this.#waitForMemory(call, i);
    const queue = () => queueCall(this.#parts, call, memory, attributesOf(call, attributes), stream);
    this.#withWorkspaces(i, () => {
      if (call.live === null) queue();
      else this.#live.capture(call, memory, stream, queue);
    });
    this.#branched.noteCaptured(i);
  }

  /** Of the storages that a call uses: what other branches do where they lie comes first. */
  #waitForMemory({ inputs, outputs }: Call, i: number): void {
    const { arena, branches } = this.#request;
    if (branches.count === 1) return;
    for (const number of new Set([...inputs, ...outputs].map(({ storage }) => storage))) {
      const place = arena.placeOf(number);
      if (!place) continue;
      this.#branched.waitFor(i, this.#uses.behind(place, number));
      this.#uses.noteStorage(number, place, i, branches.ofCalls[i]!);
    }
  }

  #withWorkspaces(i: number, queue: () => void): void {
    const { device, lowering } = this.#parts;
    const { arena, arenaAddress, branches } = this.#request;
    const workspaces = arena.workspacesOf(i, arenaAddress);
    const taken: Gap[] = [];
    lowering.spareMemory = (byteLength) => {
      const memory = workspaces.take(byteLength) ?? this.#spill(byteLength, taken);
      if (memory === null) return null;
      const place = { offset: memory.address - arenaAddress, byteLength: memory.byteLength };
      this.#branched.waitFor(i, this.#uses.behind(place));
      taken.push(place);
      return memory;
    };
    try {
      queue();
    } finally {
      lowering.spareMemory = null;
    }
    if (branches.count > 1) {
      for (const place of taken) this.#uses.noteWorkspace(place, i, branches.ofCalls[i]!);
      return;
    }
    for (const { offset, byteLength } of [...workspaces.taken, ...arena.freedBehind(i)])
      device.discard(arenaAddress + offset, byteLength);
  }

  /** Beside the arena: what an earlier call had, or more; null for a chain, which the allocator serves as well. */
  #spill(byteLength: number, taken: readonly Gap[]): DeviceBuffer | null {
    const { device } = this.#parts;
    const { arenaAddress, branches } = this.#request;
    if (branches.count === 1) return null;
    const isTaken = ({ address }: Block) => taken.some(({ offset }) => offset === address - arenaAddress);
    const fitting = this.#spilled.find((block) => block.byteLength >= byteLength && !isTaken(block));
    if (fitting) return fitting;
    const block = device.onStream(this.#chain, () => device.allocateBlock(byteLength));
    this.#spilled.push(block);
    return block;
  }

  #end(): void {
    this.#branched.join();
    for (const block of this.#spilled) this.#parts.device.freeBlock(block);
  }
}
