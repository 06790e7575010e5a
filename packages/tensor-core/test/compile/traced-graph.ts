import { expect } from 'vitest';
import { type Tensor, Tensor as TensorClass } from '../../src/index.ts';
import { Interpreter } from '../../src/compile/executable/interpreter.ts';
import { PerRunAttributes } from '../../src/compile/executable/per-run-attributes.ts';
import type { Graph } from '../../src/compile/graph/graph.ts';
import { Trace } from '../../src/compile/trace/trace.ts';
import { traced } from '../../src/compile/trace/traced.ts';

/** A graph, and what the function that it was traced from gave. */
export interface TracedGraph {
  readonly graph: Graph;
  readonly results: readonly Tensor[];
  /** The results' storages. */
  readonly kept: readonly number[];
  readonly live: Trace['live'];
}

/** The graph of `fn`, with the storages of its results kept. */
export function graphOf(fn: () => readonly Tensor[]): TracedGraph {
  const trace = new Trace([]);
  const results = traced(trace, fn);
  const kept = results.map((x) => trace.operand(x).storage);
  const { storages, written, live, calls, device } = trace;
  const graph = {
    name: '',
    device: device!,
    storages,
    written,
    calls,
    kept: new Set(kept),
    gradients: new Map<number, Tensor>(),
    tracedCalls: calls.length,
    eagerPeakBytes: 0,
  };
  return { graph, results, kept, live };
}

/** The names of a graph's ops. */
export const opNames = ({ calls }: Graph): string[] => calls.map(({ op }) => op.name);

/** Runs `changed`, another form of the graph, and expects the bits that the function gave. */
export function expectSameBits(
  { graph, results, kept, live }: TracedGraph,
  changed: Graph,
  { zerosMayDiffer = false } = {},
): void {
  const bindings = new Map(
    graph.storages.flatMap(({ source }, number) =>
      'storage' in source ? [[number, { storage: source.storage, byteOffset: 0 }] as const] : [],
    ),
  );
  const made = new Interpreter(changed).run(bindings, new PerRunAttributes(live));
  results.forEach((result, i) => {
    const storage = made.get(kept[i]!)!.retain();
    const again = new TensorClass(storage, result.dtype, result.shape, result.strides, result.offset);
    const [now, before] = [again.toTypedArray(), result.toTypedArray()].map((values) =>
      zerosMayDiffer ? Array.from(values as ArrayLike<number>, (value) => value + 0) : values,
    );
    expect(now).toEqual(before);
  });
  for (const storage of made.values()) storage.release();
}
