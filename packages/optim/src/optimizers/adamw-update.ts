import { type OnnxGraph, type OnnxValue, type TensorSpec, sizeOf } from '@roofline/tensor-core';
import {
  launchOverTensors,
  launchUpdate,
  multiTensorKernel,
  updateKernel,
} from '../multi-tensor/multi-tensor.ts';
import { skippableOp } from '../multi-tensor/skippable-op.ts';
import type { AdamWOptions } from './hyperparameters.ts';

/** The numbers of one step, the same for all tensors of a call. */
export interface AdamWStep extends Readonly<AdamWOptions> {
  /** Steps made, this one included. */
  readonly step: number;
}

/** Those that do not depend on the number of steps: 1 - ηλ, 1 - β₁, β₂ and 1 - β₂. */
function fixedCoefficients({ learningRate, betas: [beta1, beta2], weightDecay }: AdamWOptions): number[] {
  return [1 - learningRate * weightDecay, 1 - beta1, beta2, 1 - beta2];
}

/**
 * The coefficients that the kernels take, calculated in float64. The fraction m/(√v/r + ε), r = √(1-β₂ᵗ), is
 * taken as r·m/(√v + rε), which saves a division for each element.
 */
function coefficients(options: AdamWStep): number[] {
  const {
    learningRate,
    betas: [beta1, beta2],
    eps,
    step,
  } = options;
  const root = Math.sqrt(1 - beta2 ** step);
  const stepSize = learningRate / (1 - beta1 ** step);
  return [...fixedCoefficients(options), root * eps, root * stepSize];
}

const kernel = updateKernel('adamw', 'ffffffpppp');
/** In the place of coefficients that a kernel finds in memory. */
const inMemory = [0, 0, 0, 0, 0, 0];
const correctionsKernel = multiTensorKernel('adamw_corrections', 'ppdddd');
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
  scalars: (step) => [...coefficients(step), step.betas[0]],
  variant: () => '',
  cost: (_, outputs) => costOf(outputs.slice(0, outputs.length / 3)),
  writesCopies: true,
  launch: (context, lists, [skip], step, copies) =>
    launchUpdate(context, kernel, lists, copies, () => [
      ...coefficients(step),
      ...[0, skip?.address ?? 0, 0, 0],
    ]),
  byCoefficients: {
    numbers: coefficients,
    launch: (context, lists, [skip], numbers, copies) =>
      launchUpdate(context, kernel, lists, copies, () => [
        ...inMemory,
        ...[0, skip?.address ?? 0, numbers.coefficients, numbers.factor],
      ]),
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
    ...fixedCoefficients(options),
    ...[options.learningRate, options.betas[0], options.betas[1], options.eps],
  ],
  variant: () => '',
  cost: (_, outputs) => costOf(outputs.slice(0, outputs.length / 4)),
  writesCopies: true,
  launch(context, [p, m, v, steps, g], [skip], options, copies) {
    const { learningRate, betas, eps } = options;
    const corrections = context.workspace(bytesPerCorrection * steps!.length);
    const at = (tensor: number) => corrections + bytesPerCorrection * tensor;
    const skipAddress = skip?.address ?? 0;
    launchOverTensors(context, correctionsKernel, [steps!], (_, before) => [
      ...[at(before), skipAddress],
      ...[learningRate, ...betas, eps],
    ]);
    launchUpdate(context, kernel, [p!, m!, v!, g!], copies, (_, before) => [
      ...fixedCoefficients(options),
      ...[0, 0],
      ...[at(before), skipAddress, 0, 0],
    ]);
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
