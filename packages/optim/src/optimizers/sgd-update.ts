import { launchOverTensors, multiTensorKernel } from '../multi-tensor/multi-tensor.ts';
import { multiTensorOp } from '../multi-tensor/multi-tensor-op.ts';

/** The numbers of one step, the same for all tensors of a call. */
export interface SGDStep {
  readonly learningRate: number;
  readonly momentum: number;
  readonly weightDecay: number;
  readonly nesterov: boolean;
}

const plainKernel = multiTensorKernel('sgd', 'ff');
const momentumKernel = multiTensorKernel('sgd_momentum', 'fffi');

/** One step over float32 tensors, in place; the lists are parameters p and gradients g: p ← p - η(g + λp). */
export const sgdUpdate = multiTensorOp<SGDStep>({
  name: 'sgd',
  lists: 2,
  written: 1,
  scalars: ({ learningRate, weightDecay }) => [learningRate, weightDecay],
  variant: () => '',
  launch: (context, lists, _, { learningRate, weightDecay }) =>
    launchOverTensors(context, plainKernel, lists, () => [learningRate, weightDecay]),
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
export const sgdMomentumUpdate = multiTensorOp<SGDStep>({
  name: 'sgdMomentum',
  lists: 3,
  written: 2,
  scalars: ({ learningRate, weightDecay, momentum }) => [learningRate, weightDecay, momentum],
  variant: ({ nesterov }) => (nesterov ? 'nesterov' : ''),
  launch: (context, lists, _, { learningRate, weightDecay, momentum, nesterov }) =>
    launchOverTensors(context, momentumKernel, lists, () => [
      learningRate,
      weightDecay,
      momentum,
      nesterov ? 1 : 0,
    ]),
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
