import type { OnnxLowering } from '../../op/cpu-lowering.ts';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chunkSize, lowerChunked } from '../../backends/cpu/lowering/chunked-graph.ts';
import type { OnnxGraphBuilder } from '../../onnx/onnx-graph.ts';
import { lowerToGraph } from '../../backends/cpu/lowering/op-graph.ts';
import { Session } from '../../onnx/session.ts';
import { byteSize } from '../../base/dtype.ts';
import { HostMemory } from '@roofline/cuda/host';
import { sizeOf } from '../../base/shape.ts';
import type { OpCall } from './op-recorder.ts';

/** A node of a graph, and its share of the graph's time; the shares of a graph add up to 1. */
export interface NodeShare {
  /** Its ONNX operator. */
  readonly opType: string;
  readonly share: number;
}

const known = new WeakMap<object, Map<string, readonly NodeShare[]>>();

/**
 * How the time of an op's call on the CPU is shared by the nodes of its graph; an op in JavaScript counts as one node. ONNX
 * Runtime can time nodes, but that takes some ten microseconds for each, so it is not done in place, but once for equal calls.
 */
export function nodeShares(call: OpCall): readonly NodeShare[] {
  const { op, attributes, inputs, outputs } = call;
  if (outputs.every(({ shape }) => sizeOf(shape) === 0)) return [];
  const lowering = op.cpu;
  if (lowering.kind === 'memory') return [{ opType: `${op.name} (library)`, share: 1 }];
  if (lowering.kind === 'host') return [{ opType: `${op.name} (JavaScript)`, share: 1 }];
  let ofOp = known.get(op);
  if (!ofOp) known.set(op, (ofOp = new Map()));
  const variant = op.variant ? op.variant(attributes as never) : attributes;
  const key = JSON.stringify([variant, inputs, outputs]);
  let shares = ofOp.get(key);
  if (!shares) ofOp.set(key, (shares = sharesOfGraph(graphOf(call, lowering))));
  return shares;
}

/** For an op that runs piece by piece, the graph of one piece. */
function graphOf(
  { op, inputs, outputs, attributes }: OpCall,
  lowering: OnnxLowering<never>,
): OnnxGraphBuilder {
  if (!lowering.chunked) return lowerToGraph(op, lowering, inputs, outputs, attributes as never).graph;
  const length = Math.min(sizeOf(outputs[0]!.shape), chunkSize());
  return lowerChunked(op, lowering, inputs, outputs, attributes as never, length).graph;
}

/** A graph of one node needs no timing. One that divides integers cannot run on zeros, so it counts as a whole. */
function sharesOfGraph(graph: OnnxGraphBuilder): NodeShare[] {
  const opTypes = graph.operations.map(({ opType }) => opType);
  if (opTypes.length === 1 || graph.dividesIntegers) return [{ opType: opTypes.join(' '), share: 1 }];
  const folder = mkdtempSync(join(tmpdir(), `roofline-nodes-${process.pid}-`));
  try {
    return sharesOfTrace(readFileSync(traceOverZeros(graph, join(folder, 'nodes')), 'utf8'));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** ONNX Runtime counts whole microseconds, so several runs are more precise. */
const runs = 5;

/** Returns the path of ONNX Runtime's trace of several runs. */
function traceOverZeros(graph: OnnxGraphBuilder, tracePrefix: string): string {
  const zeros = [...graph.inputs, ...graph.outputs].map(
    ({ shape, dtype }) => new HostMemory(sizeOf(shape) * byteSize(dtype)),
  );
  const session = new Session(graph, tracePrefix);
  try {
    for (let run = 0; run < runs; run++) session.run(zeros.map(({ address }) => address));
    return session.endTrace();
  } finally {
    session.dispose();
  }
}

interface TraceEvent {
  readonly cat: string;
  readonly name: string;
  readonly dur: number;
  readonly args: { readonly op_name?: string };
}

/** The shares according to ONNX Runtime's trace of several runs, of which the first is a warm-up. */
export function sharesOfTrace(trace: string): NodeShare[] {
  const events = JSON.parse(trace) as TraceEvent[];
  const timed = events.filter(({ cat, name }) => cat === 'Node' && name.endsWith('_kernel_time'));
  const nodeCount = timed.length / events.filter(({ name }) => name === 'model_run').length;
  const warm = timed.slice(nodeCount);
  const sum = (nodes: readonly TraceEvent[]) => nodes.reduce((total, { dur }) => total + dur, 0);
  const totalUs = sum(warm);
  return timed.slice(0, nodeCount).map(({ args }, node) => ({
    opType: args.op_name!,
    share: totalUs === 0 ? 1 / nodeCount : sum(warm.filter((_, i) => i % nodeCount === node)) / totalUs,
  }));
}
