import { HostMemory } from '@roofline/cuda/host';
import { OnnxGraphBuilder } from './onnx-graph.ts';
import { loadedOnnxRuntime } from './onnx-runtime.ts';
import { Session } from './session.ts';

/** A session that does next to nothing, and the addresses that it reads and writes. */
interface Idle {
  readonly session: Session;
  readonly memory: HostMemory;
}

let idle: Idle | null = null;

/**
 * Gives back to the system what ONNX Runtime's arena keeps of the memory that graphs needed between their nodes: gigabytes
 * after large ops that it casts because it has no kernels for their dtypes. The arena shrinks only at the end of a run, so a
 * small graph is run.
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
