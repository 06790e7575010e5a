import type { MemoryView } from '../../../op/memory-view.ts';
import { reopenRange } from '../../../op/range.ts';
import { withOperands } from '../../../program/interpreter.ts';
import { type Call, type Program, attributesOf } from '../../../program/program.ts';
import type { ProgramMemory } from '../../../program/program-memory.ts';
import type { CudaStream } from '../driver/stream.ts';
import type { Block } from '../memory/block.ts';
import type { MemoryPool } from '../memory/memory-pool.ts';
import { BranchedCapture } from './branches/branched-capture.ts';
import type { Branches } from './branches/branches.ts';
import { CudaGraph } from './cuda-graph.ts';
import { type LiveCallParts, LiveCalls } from './live-calls.ts';

/** What is captured, and where its memory comes from. */
export interface CaptureRequest {
  readonly program: Program;
  readonly branches: Branches;
  /** For each call the made storages that no later one uses. */
  readonly lastUses: readonly (readonly number[])[];
  readonly memory: ProgramMemory;
  readonly pool: MemoryPool;
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

/**
 * Captures a program on the current stream and streams beside it. Memory is planned as for one chain: what a call beside
 * the chain has used is handed out again where nothing else is left, behind that call.
 */
export function captureProgram(parts: LiveCallParts, request: CaptureRequest): CapturedProgram {
  const { device, driver } = parts;
  const { pool } = request;
  const live = new LiveCalls(parts);
  const nodes: number[] = [];
  // What was given back outside of the capture cannot be waited for inside.
  pool.passFences();
  const graph = device.withPool(pool, () =>
    CudaGraph.capture(driver, device.stream, () => captureCalls(parts, request, live, nodes)),
  );
  return { graph, live, nodes };
}

/** Queues a call on a stream. Observers are not told: nothing runs yet. */
export function queueCall(
  { device, lowering }: LiveCallParts,
  { op, range }: Call,
  inputs: readonly MemoryView[],
  outputs: readonly MemoryView[],
  attributes: unknown,
  stream: CudaStream = device.stream,
): void {
  const queue = () => lowering.run(op, inputs, outputs, attributes as never);
  reopenRange(range, () => (stream === device.stream ? queue() : device.onStream(stream, queue)));
}

function captureCalls(
  parts: LiveCallParts,
  { program: { calls }, branches, lastUses, memory, pool, attributes }: CaptureRequest,
  live: LiveCalls,
  nodes: number[],
): void {
  const { device, driver, streams } = parts;
  const chain = device.stream;
  const beside = streams.beside(chain, branches.count - 1);
  const lastNodes = (stream: CudaStream) => CudaGraph.lastNodes(driver, stream);
  const branched = new BranchedCapture(branches, [chain, ...beside], lastNodes);
  const settle = () => {
    branched.join();
    pool.passFences();
  };
  let captured = 0;
  const newNodes = () => {
    const before = captured;
    captured = CudaGraph.capturedNodes(driver, chain);
    return captured - before;
  };
  try {
    calls.forEach((call, i) => {
      const own = attributesOf(call, attributes);
      withOperands(call, memory, (inputs, outputs) => {
        const stream = branched.streamFor(i);
        const queue = () => queueCall(parts, call, inputs, outputs, own, stream);
        if (call.live === null) queue();
        else live.capture(call, memory, stream, queue);
        if (stream !== chain) noteUse(call, memory, stream);
      });
      branched.noteCaptured(i);
      memory.free(lastUses[i]!);
      nodes.push(newNodes());
    });
  } catch (error) {
    try {
      settle();
    } catch {
      // CUDA has ended the capture itself: why, the first error says.
    }
    throw error;
  }
  settle();
  // Poison, where it is asked for.
  if (nodes.length > 0) nodes[nodes.length - 1]! += newNodes();
}

/** The chain's memory is handed out again only behind what `stream` does with it. */
function noteUse({ inputs, outputs }: Call, memory: ProgramMemory, stream: CudaStream): void {
  for (const { storage } of [...inputs, ...outputs]) {
    const made = memory.existing(storage);
    if (made) (made.storage.buffer as Block).usedBy(stream);
  }
}
