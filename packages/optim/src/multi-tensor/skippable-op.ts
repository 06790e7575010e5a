import type { OnnxLowering, Tensor } from '@roofline/tensor-core';
import { type MultiTensorDefinition, type MultiTensorOp, multiTensorOp } from './multi-tensor-op.ts';

/** An update whose CPU lowering is a graph. Its `launch` gets `skip`, where there is one, as the one shared tensor. */
export interface SkippableDefinition<A> extends MultiTensorDefinition<A> {
  readonly cpu: OnnxLowering<A>;
}

/** As a MultiTensorOp. Where `skip`, a float32 scalar of the tensors' device, is not 0, nothing changes. */
export type SkippableOp<A> = (
  lists: Parameters<MultiTensorOp<A>>[0],
  skip: Tensor | null,
  next: Parameters<MultiTensorOp<A>>[2],
) => void;

/** An update that the device can skip: nothing waits for the value that decides. */
export function skippableOp<A>(definition: SkippableDefinition<A>): SkippableOp<A> {
  const always = multiTensorOp(definition);
  const unless = multiTensorOp({ ...definition, cpu: unlessSkipped(definition) });
  return (lists, skip, next) => (skip ? unless(lists, [skip], next) : always(lists, [], next));
}

/** With `skip` after the lists, in one piece: it does not have their size. */
function unlessSkipped<A>({ written, lists, cpu }: SkippableDefinition<A>): OnnxLowering<A> {
  return {
    ...cpu,
    chunked: false,
    build(graph, inputs, attributes, info) {
      const skip = inputs[lists]!;
      const isKept = graph.node('Equal', [skip, graph.scalar('float32', 0)], {}, { dtype: 'bool' });
      const updated = cpu.build(graph, inputs.slice(0, lists), attributes, info);
      return updated
        .slice(0, written)
        .map((value, i) => graph.node('Where', [isKept, value, inputs[i]!], {}, inputs[i]!));
    },
  };
}
