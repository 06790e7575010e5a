import { type OnnxGraph, type OnnxValue, type TensorSpec, sizeOf } from '@roofline/tensor-core';
import { adamwByProducts } from './adamw-by-products.ts';
import { MultiTensorKernel, launchOverTensors, launchUpdate } from '../multi-tensor/multi-tensor.ts';
import { skippableOp } from '../multi-tensor/skippable-op.ts';
import type { AdamWOptions } from './hyperparameters.ts';

/** The numbers of one step, the same for all tensors of a call. */
export interface AdamWStep extends Readonly<AdamWOptions> {
  /** Steps made, this one included. */
  readonly step: number;
}

/** The coefficients that do not depend on the number of steps; `decay` is 1 - ηλ. */
function fixedCoefficients({ learningRate, betas: [beta1, beta2], weightDecay }: AdamWOptions) {
  const decay = 1 - learningRate * weightDecay;
  return { decay, oneMinusBeta1: 1 - beta1, beta2, oneMinusBeta2: 1 - beta2 };
}

/**
 * The coefficients that the kernels take, calculated in float64. The fraction m/(√v/r + ε), r = √(1-β₂ᵗ), is
 * taken as r·m/(√v + rε), which saves a division for each element.
 */
function coefficients(options: AdamWStep) {
  const {
    learningRate,
    betas: [beta1, beta2],
    eps,
    step,
  } = options;
  const root = Math.sqrt(1 - beta2 ** step);
  const stepSize = learningRate / (1 - beta1 ** step);
  return { ...fixedCoefficients(options), scaledEpsilon: root * eps, scaledStepSize: root * stepSize };
}

const kernel = new MultiTensorKernel('adamw', {
  ...{ decay: 'float32', oneMinusBeta1: 'float32', beta2: 'float32', oneMinusBeta2: 'float32' },
  ...{ scaledEpsilon: 'float32', scaledStepSize: 'float32' },
  ...{ corrections: 'pointer', skip: 'pointer', coefficients: 'pointer', factor: 'pointer' },
});
/** In place of coefficients that a kernel finds in memory. */
const fixedInMemory = { decay: 0, oneMinusBeta1: 0, beta2: 0, oneMinusBeta2: 0 };
const stepInMemory = { scaledEpsilon: 0, scaledStepSize: 0 };
const correctionsKernel = new MultiTensorKernel('adamw_corrections', {
  ...{ corrections: 'pointer', skip: 'pointer' },
  ...{ learningRate: 'float64', beta1: 'float64', beta2: 'float64', epsilon: 'float64' },
});
const bytesPerCorrection = 8;
const flopsPerElement = 13;
/** Four float32 read, three written. */
const bytesPerElement = 28;

function costOf(parameters: readonly TensorSpec[]) {
  const elements = parameters.reduce((sum, { shape }) => sum + sizeOf(shape), 0);
  return { flops: flopsPerElement * elements, bytesMoved: bytesPerElement * elements };
}

/**
 * p, m and v after a step, with float32 coefficients. (1 − β₂)g² can be finite where g² overflows, so g is scaled
 * first.
 */
function stepNodes(graph: OnnxGraph, [p, m, v, g]: readonly OnnxValue[], coefficients: readonly OnnxValue[]) {
  const [decay, oneMinusBeta1, beta2, oneMinusBeta2, scaledEps, scaledStepSize, beta1] = coefficients;
  const node = (type: string, ...operands: (OnnxValue | undefined)[]) =>
    graph.node(
      type,
      operands.map((operand) => operand!),
    );
  const newM = node('Add', node('Mul', m, beta1), node('Mul', g, oneMinusBeta1));
  const newV = node('Add', node('Mul', v, beta2), node('Mul', node('Mul', g, oneMinusBeta2), g));
  const fraction = node('Div', newM, node('Add', node('Sqrt', newV), scaledEps));
  const change = node('Mul', fraction, scaledStepSize);
  return [node('Sub', node('Mul', p, decay), change), newM, newV];
}

/**
 * One AdamW step over float32 tensors, in place (Loshchilov & Hutter 2019, algorithm 2); the lists are
 * parameters p, first moments m, second moments v and gradients g:
 * m ← β₁m + (1-β₁)g, v ← β₂v + (1-β₂)g², p ← p(1-ηλ) - η/(1-β₁ᵗ) · m/(√v/√(1-β₂ᵗ) + ε).
 */
export const adamwUpdate = skippableOp<AdamWStep>({
  name: 'adamw',
  lists: 4,
  written: 3,
  scalars: (step) => [...Object.values(coefficients(step)), step.betas[0]],
  variant: () => '',
  cost: (_, outputs) => costOf(outputs.slice(0, outputs.length / 3)),
  writesCopies: true,
  launch: (context, lists, [skip], step, copies) =>
    launchUpdate(context, kernel, lists, copies, () => ({
      ...coefficients(step),
      ...{ corrections: 0, skip: skip?.address ?? 0, coefficients: 0, factor: 0 },
    })),
  byCoefficients: {
    numbers: (step) => Object.values(coefficients(step)),
    launch: (context, lists, [skip], numbers, copies) =>
      launchUpdate(context, kernel, lists, copies, () => ({
        ...fixedInMemory,
        ...stepInMemory,
        ...{ corrections: 0, skip: skip?.address ?? 0 },
        ...{ coefficients: numbers.coefficients, factor: numbers.factor },
      })),
    byProducts: adamwByProducts,
  },
  cpu: {
    kind: 'onnx',
    chunked: true,
    build: (graph, lists, _, { scalars }) => stepNodes(graph, lists, scalars),
  },
});

/**
 * The same with the number of steps that each tensor has made on the device, which counts it up; the lists are p, m, v,
 * these numbers (float64 scalars) and g.
 */
export const adamwCountedUpdate = skippableOp<AdamWOptions>({
  name: 'adamw',
  lists: 5,
  written: 4,
  scalars: (options) => [
    ...Object.values(fixedCoefficients(options)),
    ...[options.learningRate, options.betas[0], options.betas[1], options.eps],
  ],
  variant: () => '',
  cost: (_, outputs) => costOf(outputs.slice(0, outputs.length / 4)),
  writesCopies: true,
  launch(context, [p, m, v, steps, g], [skip], options, copies) {
    const {
      learningRate,
      betas: [beta1, beta2],
      eps: epsilon,
    } = options;
    const corrections = context.workspace(bytesPerCorrection * steps!.length);
    const at = (tensor: number) => corrections + bytesPerCorrection * tensor;
    const skipAddress = skip?.address ?? 0;
    launchOverTensors(context, correctionsKernel, [steps!], (_, before) => ({
      ...{ corrections: at(before), skip: skipAddress },
      ...{ learningRate, beta1, beta2, epsilon },
    }));
    launchUpdate(context, kernel, [p!, m!, v!, g!], copies, (_, before) => ({
      ...fixedCoefficients(options),
      ...stepInMemory,
      ...{ corrections: at(before), skip: skipAddress, coefficients: 0, factor: 0 },
    }));
  },
  cpu: {
    kind: 'onnx',
    build(graph, [p, m, v, steps, g], _, { scalars }) {
      const [learningRate, beta1, beta2, eps] = scalars.slice(4);
      const one = graph.scalar('float64', 1);
      const step = graph.node('Add', [steps!, one]);
      const rest = (beta: OnnxValue) => graph.node('Sub', [one, graph.node('Pow', [beta, step])]);
      const root = graph.node('Sqrt', [rest(beta2!)]);
      const stepSize = graph.node('Div', [learningRate!, rest(beta1!)]);
      const corrections = [eps!, stepSize].map((factor) => graph.node('Mul', [root, factor]));
      const inOrder = [...scalars.slice(0, 4), ...corrections, beta1!];
      const coefficients = inOrder.map((x) => graph.cast(x, 'float32'));
      return [...stepNodes(graph, [p!, m!, v!, g!], coefficients), step];
    },
  },
});
