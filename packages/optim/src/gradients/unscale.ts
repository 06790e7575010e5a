import { type ComputeOp, type Tensor, apply, defineOp } from '@roofline/tensor-core';
import { MultiTensorKernel, launchOverTensors } from '../multi-tensor/multi-tensor.ts';

const kernel = new MultiTensorKernel('unscale', { foundInf: 'pointer', scale: 'pointer' });
const ops = new Map<number, ComputeOp<undefined>>();

/**
 * Divides float32 gradients by `scale` in place, and sets `foundInf` to 1 if one of the quotients is infinite or not a
 * number; both are float32 scalars. On a GPU this takes one kernel for every 88 gradients.
 */
export function unscale(gradients: readonly Tensor[], foundInf: Tensor, scale: Tensor): void {
  const count = gradients.length;
  let op = ops.get(count);
  if (!op) ops.set(count, (op = defineForCount(count)));
  for (const output of apply(op, [...gradients, foundInf, scale], undefined)) output.dispose();
}

/** Which inputs an op writes depends on the number of gradients, so each number has an op of its own. */
function defineForCount(count: number): ComputeOp<undefined> {
  return defineOp({
    name: 'unscale',
    autocast: 'none',
    infer: (inputs) => inputs.slice(0, count + 1),
    mutates: Array.from({ length: count + 1 }, (_, i) => i),
    cuda: {
      kind: 'custom',
      launch(context, inputs) {
        const [foundInf, scale] = inputs.slice(count);
        launchOverTensors(context, kernel, [inputs.slice(0, count)], () => ({
          foundInf: foundInf!.address,
          scale: scale!.address,
        }));
      },
    },
    cpu: {
      kind: 'onnx',
      overwrites: true,
      build(graph, inputs) {
        const [foundInf, scale] = inputs.slice(count);
        const inverse = graph.node('Reciprocal', [graph.cast(scale!, 'float64')]);
        const inverseScale = graph.cast(inverse, 'float32');
        const unscaled = inputs
          .slice(0, count)
          .map((gradient) => graph.node('Mul', [gradient, inverseScale]));
        const zero = graph.scalar('float32', 0);
        // 0 · x is 0 unless x is infinite or not a number.
        const sums = unscaled.map((gradient) =>
          graph.node(
            'ReduceSum',
            [graph.node('Mul', [gradient, zero], {}, gradient)],
            { keepdims: 0 },
            { shape: [] },
          ),
        );
        const notFinite = graph.node('IsNaN', [graph.node('Sum', sums)], {}, { dtype: 'bool' });
        const found = graph.node('Max', [foundInf!, graph.cast(notFinite, 'float32')]);
        return [...unscaled, found];
      },
    },
  });
}
