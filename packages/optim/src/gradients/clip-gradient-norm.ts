import {
  type OnnxGraph,
  type OnnxValue,
  type Tensor,
  applyOne,
  checkNumber,
  checkOptions,
  defineOp,
  mul,
  noGrad,
  range,
  scope,
  sizeOf,
  sqrt,
  zeros,
} from '@roofline/tensor-core';
import { kernelFile, noDefines } from '../kernel-file.ts';
import { MultiTensorKernel, blocksOf, launchOverTensors } from '../multi-tensor/multi-tensor.ts';
import { multiTensorOp } from '../multi-tensor/multi-tensor-op.ts';
import { type GradientRanks, requireRanks } from './gradient-ranks.ts';
import { gradientsOf, gradientsOfRank } from './gradients.ts';

const squaredNormsKernel = new MultiTensorKernel('squared_norms', { partialSums: 'pointer' });
const finishNormKernel = kernelFile('finish_norm', {
  ...{ partialSums: 'pointer', count: 'int32', norm: 'pointer' },
});
const clipKernel = new MultiTensorKernel('clip', { norm: 'pointer', maxNorm: 'float32' });
const clipFactorKernel = kernelFile('clip_factor', {
  ...{ norm: 'pointer', maxNorm: 'float32', factor: 'pointer' },
});
const finishThreads = 1024;
/** Elements that the CPU squares and adds up at once. */
const longestPiece = 1024;
/** As torch.nn.utils.clip_grad_norm_. */
const epsilon = 1e-6;

const globalNorm = defineOp({
  name: 'globalNorm',
  autocast: 'none',
  infer: () => [{ shape: [], dtype: 'float32' }],
  variant: () => '',
  cuda: {
    kind: 'custom',
    launch(context, tensors, [norm]) {
      const blocks = blocksOf(tensors);
      const partialSums = context.workspace(4 * blocks);
      launchOverTensors(context, squaredNormsKernel, [tensors], (before) => ({
        partialSums: partialSums + 4 * before,
      }));
      context
        .kernel(finishNormKernel(noDefines))
        .launch(
          [1, 1, 1],
          finishThreads,
          0,
          finishNormKernel.byName({ partialSums, count: blocks, norm: norm!.address }),
        );
    },
  },
  cpu: {
    kind: 'onnx',
    build(graph, tensors) {
      const squares = tensors.map((x) => sumOfSquares(graph, x));
      return [graph.cast(graph.node('Sqrt', [graph.node('Sum', squares)]), 'float32')];
    },
  },
});

/**
 * In pieces first, whose sums are added up in float64: one float32 sum over a million elements would lose two
 * digits. The pieces of a prime number of elements are its elements.
 */
function sumOfSquares(graph: OnnxGraph, x: OnnxValue): OnnxValue {
  const size = sizeOf(x.shape);
  let piece = Math.max(1, Math.min(size, longestPiece));
  while (size % piece !== 0) piece--;
  const shape = [size / piece, piece];
  const pieces = graph.node('Reshape', [x, graph.integers(shape)], { allowzero: 1 }, { shape });
  const sums = graph.node(
    'ReduceSumSquare',
    [pieces, graph.integers([1])],
    { keepdims: 0 },
    { shape: [size / piece] },
  );
  return graph.node('ReduceSum', [graph.cast(sums, 'float64')], { keepdims: 0 }, { shape: [] });
}

interface ClipAttributes {
  readonly maxNorm: number;
}

const clipByNorm = multiTensorOp<ClipAttributes>({
  name: 'clipByNorm',
  lists: 1,
  written: 1,
  scalars: ({ maxNorm }) => [maxNorm],
  variant: () => '',
  launch: (context, lists, [norm], { maxNorm }) =>
    launchOverTensors(context, clipKernel, lists, () => ({ norm: norm!.address, maxNorm })),
  scales: {
    factor: (context, [norm], { address }, { maxNorm }) =>
      context
        .kernel(clipFactorKernel(noDefines))
        .launch([1, 1, 1], 1, 0, clipFactorKernel.byName({ norm: norm!.address, maxNorm, factor: address })),
  },
  cpu: {
    kind: 'onnx',
    overwrites: true,
    build(graph, [gradient, norm], _, { scalars: [maxNorm] }) {
      const quotient = graph.node('Div', [
        maxNorm!,
        graph.node('Add', [norm!, graph.scalar('float32', epsilon)]),
      ]);
      const scale = graph.node('Min', [quotient, graph.scalar('float32', 1)]);
      return [graph.node('Mul', [gradient!, scale])];
    },
  },
});

/** Options of `clipGradientNorm`. */
export interface ClipOptions {
  /** Where each rank has a part of the gradients: the norm is taken over all of them. */
  readonly ranks?: GradientRanks;
}

/**
 * Scales all gradients by one factor so that their norm, taken over all of them as one vector, is at most
 * `maxNorm` (Pascanu et al. 2013). Parameters without a gradient are passed over; one that is given twice counts
 * once. As in PyTorch, an infinite norm leaves zeros and NaN, and a norm that is NaN leaves NaN.
 *
 * Returns the norm before clipping, a float32 scalar on the parameters' device: nothing waits for it unless
 * you read it. Throws a RooflineError if no parameter has a gradient (code GRADIENT; with `ranks` a rank may have none), or
 * `maxNorm` is not positive (code RANGE).
 */
export function clipGradientNorm(
  parameters: Iterable<Tensor>,
  maxNorm: number,
  options: ClipOptions = {},
): Tensor {
  checkNumber('clipGradientNorm', 'maxNorm', maxNorm, 'a positive number', (value) => value > 0);
  checkOptions('clipGradientNorm', options, ['ranks']);
  const { ranks } = options;
  if (ranks !== undefined) requireRanks('clipGradientNorm', ranks);
  const { gradients, norm } = ranks
    ? normOverRanks(parameters, ranks)
    : normAlone(gradientsOf('clipGradientNorm', parameters));
  return range('clipGradientNorm', () =>
    noGrad(() =>
      scope(() => {
        const before = norm();
        if (gradients.length > 0) clipByNorm([gradients], [before], () => ({ maxNorm }));
        return before;
      }),
    ),
  );
}

/** Gradients, and what calculates their norm. */
interface Normed {
  readonly gradients: Tensor[];
  readonly norm: () => Tensor;
}

function normAlone(gradients: Tensor[]): Normed {
  return { gradients, norm: () => applyOne(globalNorm, gradients, undefined) };
}

function normOverRanks(parameters: Iterable<Tensor>, ranks: GradientRanks): Normed {
  const counts = ranks.counts?.bind(ranks);
  const { gradients, counted, device } = gradientsOfRank('clipGradientNorm', parameters, counts);
  const norm = () => {
    const own = counted.length > 0 ? applyOne(globalNorm, counted, undefined) : zeros([], { device });
    const squares = mul(own, own);
    ranks.sum(squares);
    return sqrt(squares);
  };
  return { gradients, norm };
}
