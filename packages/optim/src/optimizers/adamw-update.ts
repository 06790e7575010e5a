import { sizeOf } from '@roofline/tensor-core';
import { multiTensorOp } from '../multi-tensor/multi-tensor-op.ts';
import { launchOverTensors, multiTensorKernel } from '../multi-tensor/multi-tensor.ts';

/** The numbers of one step, the same for all tensors of a call. */
export interface AdamWStep {
  readonly learningRate: number;
  readonly betas: readonly [number, number];
  readonly eps: number;
  readonly weightDecay: number;
  /** Steps made, this one included. */
  readonly step: number;
}

/**
 * The coefficients that the kernels take, calculated in float64. The fraction m/(√v/r + ε), r = √(1-β₂ᵗ), is
 * taken as r·m/(√v + rε), which saves a division for each element.
 */
function coefficients({ learningRate, betas: [beta1, beta2], eps, weightDecay, step }: AdamWStep): number[] {
  const decay = 1 - learningRate * weightDecay;
  const root = Math.sqrt(1 - beta2 ** step);
  const stepSize = learningRate / (1 - beta1 ** step);
  return [decay, 1 - beta1, beta2, 1 - beta2, root * eps, root * stepSize];
}

const kernel = multiTensorKernel('adamw', 'ffffff');
const flopsPerElement = 13;
/** Four float32 read, three written. */
const bytesPerElement = 28;

/**
 * One AdamW step over float32 tensors, in place (Loshchilov & Hutter 2019, algorithm 2); the lists are
 * parameters p, first moments m, second moments v and gradients g:
 * m ← m + (1-β₁)(g-m), v ← β₂v + (1-β₂)g², p ← p(1-ηλ) - η/(1-β₁ᵗ) · m/(√v/√(1-β₂ᵗ) + ε).
 */
export const adamwUpdate = multiTensorOp<AdamWStep>({
  name: 'adamw',
  lists: 4,
  written: 3,
  scalars: coefficients,
  variant: () => '',
  cost: (inputs) => {
    const elements = inputs.reduce((sum, { shape }) => sum + sizeOf(shape), 0) / 4;
    return { flops: flopsPerElement * elements, bytesMoved: bytesPerElement * elements };
  },
  launch: (context, lists, _, step) => launchOverTensors(context, kernel, lists, () => coefficients(step)),
  cpu: {
    kind: 'onnx',
    chunked: true,
    build(graph, [p, m, v, g], _, { scalars }) {
      const [decay, oneMinusBeta1, beta2, oneMinusBeta2, scaledEps, scaledStepSize] = scalars;
      const node = (type: string, ...operands: (typeof p)[]) =>
        graph.node(
          type,
          operands.map((operand) => operand!),
        );
      const newM = node('Add', m, node('Mul', node('Sub', g, m), oneMinusBeta1));
      const newV = node('Add', node('Mul', v, beta2), node('Mul', node('Mul', g, g), oneMinusBeta2));
      const fraction = node('Div', newM, node('Add', node('Sqrt', newV), scaledEps));
      const change = node('Mul', fraction, scaledStepSize);
      return [node('Sub', node('Mul', p, decay), change), newM, newV];
    },
  },
});
