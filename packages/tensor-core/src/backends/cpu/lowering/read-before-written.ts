import { ShapeError } from '../../../base/errors.ts';
import type { ComputeOp } from '../../../op/op.ts';
import type { OnnxGraphBuilder } from '../../../onnx/onnx-graph.ts';

/**
 * Throws a ShapeError where a mutated input could be read after the graph has overwritten it: ONNX Runtime chooses the order
 * of nodes, and only a node's ancestors are sure to run before it.
 */
export function checkReadBeforeWritten<A>({ name, mutates }: ComputeOp<A>, graph: OnnxGraphBuilder): void {
  mutates?.forEach((input, output) => checkReads(name, graph, input, output));
}

function checkReads(op: string, graph: OnnxGraphBuilder, input: number, output: number): void {
  const earlier = nodesThatLeadTo(graph, [graph.outputs[output]!.name]);
  const used = nodesThatLeadTo(
    graph,
    graph.outputs.map(({ name }) => name),
  );
  const { name } = graph.inputs[input]!;
  const late = [...used].find((node) => node.inputs.includes(name) && !earlier.has(node));
  if (late) {
    throw new ShapeError(
      `${op}: output ${output} replaces input ${input} in place, but a ${late.opType} that does not lead to that ` +
        'output reads the input too. Let it read the output, or do without `chunked` and `overwrites`.',
    );
  }
}

type Node = OnnxGraphBuilder['operations'][number];

function nodesThatLeadTo(graph: OnnxGraphBuilder, outputs: readonly string[]): Set<Node> {
  const makers = new Map(
    graph.operations.flatMap((node) => node.outputs.map((name) => [name, node] as const)),
  );
  const nodes = new Set<Node>();
  const pending = [...outputs];
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    const maker = makers.get(name);
    if (!maker || nodes.has(maker)) continue;
    nodes.add(maker);
    pending.push(...maker.inputs);
  }
  return nodes;
}
