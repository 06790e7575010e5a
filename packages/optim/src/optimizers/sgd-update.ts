import type { SGDOptions } from './hyperparameters.ts';
import { MultiTensorKernel, launchUpdate } from '../multi-tensor/multi-tensor.ts';
import { skippableOp } from '../multi-tensor/skippable-op.ts';

const pointers = { skip: 'pointer', coefficients: 'pointer', factor: 'pointer' } as const;
const plainKernel = new MultiTensorKernel('sgd', {
  ...{ learningRate: 'float32', weightDecay: 'float32' },
  ...pointers,
});
const momentumKernel = new MultiTensorKernel('sgd_momentum', {
  ...{ learningRate: 'float32', weightDecay: 'float32', momentum: 'float32', nesterov: 'float32' },
  ...pointers,
});

/** In place of numbers that a kernel finds in memory. */
const [plainInMemory, momentumInMemory] = [
  { learningRate: 0, weightDecay: 0 },
  { learningRate: 0, weightDecay: 0, momentum: 0, nesterov: 0 },
];

function momentumNumbers({ learningRate, weightDecay, momentum, nesterov }: SGDOptions) {
  return { learningRate, weightDecay, momentum, nesterov: nesterov ? 1 : 0 };
}

/** One step over float32 tensors, in place; the lists are parameters p and gradients g: p ← p - η(g + λp). */
export const sgdUpdate = skippableOp<SGDOptions>({
  name: 'sgd',
  lists: 2,
  written: 1,
  scalars: ({ learningRate, weightDecay }) => [learningRate, weightDecay],
  variant: () => '',
  writesCopies: true,
  launch: (context, lists, [skip], { learningRate, weightDecay }, copies) =>
    launchUpdate(context, plainKernel, lists, copies, () => ({
      ...{ learningRate, weightDecay },
      ...{ skip: skip?.address ?? 0, coefficients: 0, factor: 0 },
    })),
  byCoefficients: {
    numbers: ({ learningRate, weightDecay }) => [learningRate, weightDecay],
    launch: (context, lists, [skip], numbers, copies) =>
      launchUpdate(context, plainKernel, lists, copies, () => ({
        ...plainInMemory,
        ...{ skip: skip?.address ?? 0, coefficients: numbers.coefficients, factor: numbers.factor },
      })),
  },
  cpu: {
    kind: 'onnx',
    chunked: true,
    build(graph, [p, g], _, { scalars: [learningRate, weightDecay] }) {
      const gradient = graph.node('Add', [g!, graph.node('Mul', [p!, weightDecay!])]);
      return [graph.node('Sub', [p!, graph.node('Mul', [gradient, learningRate!])])];
    },
  },
});

/**
 * The same with momentum; the lists are parameters p, momentum buffers b and gradients g:
 * b ← μb + g + λp, p ← p - ηb, or with Nesterov's look ahead p ← p - η(g + λp + μb).
 */
export const sgdMomentumUpdate = skippableOp<SGDOptions>({
  name: 'sgdMomentum',
  lists: 3,
  written: 2,
  scalars: ({ learningRate, weightDecay, momentum }) => [learningRate, weightDecay, momentum],
  variant: ({ nesterov }) => (nesterov ? 'nesterov' : ''),
  writesCopies: true,
  launch: (context, lists, [skip], options, copies) =>
    launchUpdate(context, momentumKernel, lists, copies, () => ({
      ...momentumNumbers(options),
      ...{ skip: skip?.address ?? 0, coefficients: 0, factor: 0 },
    })),
  byCoefficients: {
    numbers: (options) => Object.values(momentumNumbers(options)),
    launch: (context, lists, [skip], numbers, copies) =>
      launchUpdate(context, momentumKernel, lists, copies, () => ({
        ...momentumInMemory,
        ...{ skip: skip?.address ?? 0, coefficients: numbers.coefficients, factor: numbers.factor },
      })),
  },
  cpu: {
    kind: 'onnx',
    chunked: true,
    build(graph, [p, buffer, g], { nesterov }, { scalars: [learningRate, weightDecay, momentum] }) {
      const gradient = graph.node('Add', [g!, graph.node('Mul', [p!, weightDecay!])]);
      const newBuffer = graph.node('Add', [graph.node('Mul', [buffer!, momentum!]), gradient]);
      const direction = nesterov
        ? graph.node('Add', [gradient, graph.node('Mul', [newBuffer, momentum!])])
        : newBuffer;
      return [graph.node('Sub', [p!, graph.node('Mul', [direction, learningRate!])]), newBuffer];
    },
  },
});
