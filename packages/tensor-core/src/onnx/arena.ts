import { HostMemory } from '@roofline/cuda/host';
import { OnnxGraphBuilder } from './onnx-graph.ts';
import { loadedOnnxRuntime } from './onnx-runtime.ts';
import { Session } from './session.ts';

/** A graph that does next to nothing, and where it reads and writes. */
interface Idle {
  readonly session: Session;
  readonly memory: HostMemory;
}

let idle: Idle | null = null;

/**
 * Gives back to the system what ONNX Runtime's arena keeps of the memory that graphs needed between their nodes; after
 * large ops whose dtypes it has no kernels for, and which it casts, that is gigabytes. The arena shrinks at the end of a
 * run alone, so a small graph runs.
 */
export function emptyArena(): void {
  const runtime = loadedOnnxRuntime();
  if (runtime === null) return;
  idle ??= makeIdle();
  const { session, memory } = idle;
  session.run([memory.address, memory.address + elementBytes], runtime.shrinkingRun());
}

const elementBytes = 4;

function makeIdle(): Idle {
  const graph = new OnnxGraphBuilder();
  graph.output(graph.node('Identity', [graph.input('float32', [1])]));
  return { session: new Session(graph), memory: new HostMemory(2 * elementBytes) };
}
