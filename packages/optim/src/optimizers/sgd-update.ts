import type { SGDOptions } from './hyperparameters.ts';
import { launchUpdate, updateKernel } from '../multi-tensor/multi-tensor.ts';
import { skippableOp } from '../multi-tensor/skippable-op.ts';

const plainKernel = updateKernel('sgd', 'ffppp');
const momentumKernel = updateKernel('sgd_momentum', 'ffffppp');

function momentumNumbers({ learningRate, weightDecay, momentum, nesterov }: SGDOptions): number[] {
  return [learningRate, weightDecay, momentum, nesterov ? 1 : 0];
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
    launchUpdate(context, plainKernel, lists, copies, () => [
      ...[learningRate, weightDecay],
      ...[skip?.address ?? 0, 0, 0],
    ]),
  byCoefficients: {
    numbers: ({ learningRate, weightDecay }) => [learningRate, weightDecay],
    launch: (context, lists, [skip], numbers, copies) =>
      launchUpdate(context, plainKernel, lists, copies, () => [
        ...[0, 0],
        ...[skip?.address ?? 0, numbers.coefficients, numbers.factor],
      ]),
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
    launchUpdate(context, momentumKernel, lists, copies, () => [
      ...momentumNumbers(options),
      ...[skip?.address ?? 0, 0, 0],
    ]),
  byCoefficients: {
    numbers: momentumNumbers,
    launch: (context, lists, [skip], numbers, copies) =>
      launchUpdate(context, momentumKernel, lists, copies, () => [
        ...[0, 0, 0, 0],
        ...[skip?.address ?? 0, numbers.coefficients, numbers.factor],
      ]),
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
