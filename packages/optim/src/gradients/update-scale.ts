import { type Tensor, apply, defineOp } from '@roofline/tensor-core';
import { kernelFile, noDefines } from '../kernel-file.ts';

/** When the scale grows and shrinks; see GradientScalerOptions. */
export interface ScaleRule {
  readonly growthFactor: number;
  readonly backoffFactor: number;
  readonly growthInterval: number;
}

/** Of smaller ones, which are not normal float32, the inverse is infinite sooner or later. */
const smallestScale = 2 ** -126;

const kernel = kernelFile('update_scale', {
  ...{ scale: 'pointer', growthTracker: 'pointer', foundInf: 'pointer' },
  ...{ growthFactor: 'float64', backoffFactor: 'float64', growthInterval: 'int64' },
});

const updateScaleOp = defineOp<ScaleRule>({
  name: 'updateScale',
  autocast: 'none',
  infer: (inputs) => inputs.slice(0, 2),
  mutates: [0, 1],
  cuda: {
    kind: 'custom',
    launch(context, [scale, growthTracker, foundInf], _, { growthFactor, backoffFactor, growthInterval }) {
      const values = kernel.byName({
        scale: scale!.address,
        growthTracker: growthTracker!.address,
        foundInf: foundInf!.address,
        ...{ growthFactor, backoffFactor, growthInterval },
      });
      context.kernel(kernel(noDefines)).launch([1, 1, 1], 1, 0, values);
    },
  },
  cpu: {
    kind: 'onnx',
    build(graph, [scale, growthTracker, foundInf], { growthFactor, backoffFactor, growthInterval }) {
      const bool = { dtype: 'bool' } as const;
      const times = (factor: number) => {
        const product = graph.node('Mul', [graph.cast(scale!, 'float64'), graph.scalar('float64', factor)]);
        return graph.cast(product, 'float32');
      };
      const where = (condition: typeof scale, then: typeof scale, otherwise: typeof scale) =>
        graph.node('Where', [condition!, then!, otherwise!], {}, then);
      const count = graph.node('Add', [growthTracker!, graph.scalar('int64', 1)]);
      const isGrowing = graph.node(
        'GreaterOrEqual',
        [count, graph.scalar('int64', growthInterval)],
        {},
        bool,
      );
      const grown = times(growthFactor);
      const isInfinite = graph.node('IsInf', [grown], {}, bool);
      const good = where(isGrowing, where(isInfinite, scale, grown), scale);
      const shrunk = times(backoffFactor);
      const isTooSmall = graph.node('Less', [shrunk, graph.scalar('float32', smallestScale)], {}, bool);
      const backedOff = where(isTooSmall, scale, shrunk);
      const isGood = graph.node('Equal', [foundInf!, graph.scalar('float32', 0)], {}, bool);
      const zero = graph.scalar('int64', 0);
      return [where(isGood, good, backedOff), where(isGood, where(isGrowing, zero, count), zero)];
    },
  },
});

/**
 * Adapts `scale`, a float32 scalar, and `growthTracker`, an int64 scalar that counts the good steps since it last changed,
 * to a step: a bad one, where `foundInf` is not 0, or a good one. A state that was loaded may have counted more than the interval.
 */
export function updateScale(scale: Tensor, growthTracker: Tensor, foundInf: Tensor, rule: ScaleRule): void {
  for (const output of apply(updateScaleOp, [scale, growthTracker, foundInf], rule)) output.dispose();
}
