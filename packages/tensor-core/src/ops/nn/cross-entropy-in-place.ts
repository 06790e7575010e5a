import type { MemoryView } from '../../base/memory-view.ts';
import { bytesOf } from '../../op/cost.ts';
import { apply, applyOne } from '../../op/apply.ts';
import { computeDType } from '../../base/dtype.ts';
import { defineOp } from '../../op/op.ts';
import { sizeOf } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { type CrossEntropyAttributes, sumAll, targetColumns } from './cross-entropy.ts';
import { launchJointCrossEntropy } from './joint-cross-entropy.ts';
import { logSoftmaxNode } from './softmax-graph.ts';

/**
 * Writes the gradient of logits [N, V] over them, (softmax - onehot) · scale, 0 in ignored rows, and gives the sum of the
 * rows' losses, where `crossEntropy` gives their mean: so a loss can be made from chunks of rows, and one more tensor of
 * the logits' size is never there.
 */
const crossEntropyInPlaceOp = defineOp<CrossEntropyAttributes>({
  name: 'crossEntropy_',
  autocast: 'none',
  infer: ([logits]) => [logits!, { shape: [], dtype: computeDType([logits!.dtype], []) }],
  mutates: [0],
  cost: (inputs, outputs) => ({
    flops: 8 * sizeOf(inputs[0]!.shape),
    bytesMoved: bytesOf(inputs) + bytesOf(outputs),
  }),
  cuda: {
    kind: 'custom',
    launch(context, inputs, [dlogits, loss], { ignoreIndex }) {
      const [logits, , scale] = inputs as readonly [MemoryView, MemoryView, MemoryView];
      const settings = { ignoreIndex, dtype: logits.dtype, scale };
      launchJointCrossEntropy(context, { value: 1 }, inputs, [loss!, dlogits!], settings);
    },
  },
  cpu: {
    kind: 'onnx',
    build: (graph, [logits, targets, scale], { ignoreIndex }) => {
      const { counted, column } = targetColumns(graph, logits!, targets!, ignoreIndex);
      const { shape } = column;
      const zero = graph.scalar(logits!.dtype, 0);
      const ofRows = (x: Parameters<typeof graph.cast>[0]) =>
        graph.node('Where', [counted, x, zero], {}, { ...logits!, shape });
      const logProbabilities = logSoftmaxNode(graph, logits!);
      const chosen = graph.node('GatherElements', [logProbabilities, column], { axis: 1 }, { shape });
      const minusOnes = graph.constant(logits!.dtype, shape, new Array<number>(shape[0]!).fill(-1));
      const probabilities = graph.node('Softmax', [logits!], { axis: -1 });
      // Before the product, because there ONNX Runtime scatters in place.
      const difference = graph.node('ScatterElements', [probabilities, column, minusOnes], {
        axis: 1,
        reduction: 'add',
      });
      const scales = ofRows(graph.cast(scale!, logits!.dtype));
      return [graph.node('Mul', [difference, scales]), sumAll(graph, ofRows(graph.node('Neg', [chosen])))];
    },
  },
});

/**
 * The sum of the losses of rows of logits [N, V], whose gradient, times the one element of `scale`, is written over them.
 * Operands have been checked.
 */
export function crossEntropyInPlace(
  logits: Tensor,
  targets: Tensor,
  scale: Tensor,
  attributes: CrossEntropyAttributes,
): Tensor {
  const [dlogits, loss] = apply(crossEntropyInPlaceOp, [logits, targets, scale], attributes);
  dlogits!.dispose();
  return loss!;
}

/** Multiplies `x` in place by the one element of `factor`, as optimizers and losses do to gradients. */
const scaleInPlaceOp = defineOp({
  name: 'mul_',
  autocast: 'none',
  infer: ([x]) => [x!],
  mutates: [0],
  cuda: { kind: 'pointwise', expressions: () => ['a * b'] },
  cpu: {
    kind: 'onnx',
    overwrites: true,
    build: (graph, [a, b]) => {
      const dtype = computeDType([a!.dtype, b!.dtype], []);
      return [graph.node('Mul', [graph.cast(a!, dtype), graph.cast(b!, dtype)])];
    },
  },
});

/** Multiplies `x` in place by the one element of `factor`. Call it in noGrad. */
export function scaleInPlace(x: Tensor, factor: Tensor): void {
  applyOne(scaleInPlaceOp, [x, factor], undefined).dispose();
}
