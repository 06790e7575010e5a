import * as t from '../../../src/index.ts';
import type { ReductionOptions, Shape, Tensor } from '../../../src/index.ts';
import { type OpEntry, type Rule, python } from '../programs/program.ts';
import type { RandomSource } from '../programs/random-source.ts';
import { drawDType, drawShape, drawTensor } from '../programs/tensor-input.ts';
import type { ValueKind } from '../programs/values.ts';
import { drawDimension, tensorOf } from './operands.ts';

/** Small shapes, occasionally a long row or column, and rarely one of up to a million elements. */
function drawReducible(random: RandomSource): Shape {
  const most = () => random.integer(100_000, 1_000_000);
  return random.weighted<() => Shape>([
    [91.2, () => drawShape(random)],
    [0.4, () => [most()]],
    [0.2, () => [Math.floor(most() / 3), 3]],
    [0.2, () => [2, Math.floor(most() / 2)]],
    [3, () => [random.integer(500, 3000)]],
    [3, () => [random.integer(500, 3000), 2]],
    [2, () => [2, random.integer(500, 3000)]],
  ])();
}

function drawOptions(random: RandomSource, rank: number): ReductionOptions {
  const keepDims = random.chance(0.4);
  if (random.chance(0.3)) return random.chance(0.5) ? {} : { keepDims };
  if (rank === 0 || random.chance(0.5)) return { dims: drawDimension(random, rank), keepDims };
  const all = random.shuffled(Array.from({ length: rank }, (_, i) => (random.chance(0.5) ? i : i - rank)));
  const dims = all.slice(0, random.integer(1, rank));
  if (random.chance(0.03)) dims.push(dims[0]!);
  return { dims, keepDims };
}

/** How many elements fold into one. */
function foldedCount(shape: Shape, { dims }: ReductionOptions): number {
  if (dims === undefined) return shape.reduce((product, length) => product * length, 1);
  const list = typeof dims === 'number' ? [dims] : dims;
  return list.reduce((product, dim) => product * (shape.at(dim) ?? 1), 1);
}

interface ReductionChoices {
  readonly values?: (random: RandomSource) => ValueKind;
  /** Whether the PyTorch function must be given all dimensions. */
  readonly listsDims?: boolean;
  /** Whether it sums in float64. */
  readonly exactAddends?: boolean;
}

export const reduction = (
  name: string,
  ours: (x: Tensor, options: ReductionOptions) => Tensor,
  torch: string,
  rule: Rule,
  { values, listsDims = false, exactAddends = false }: ReductionChoices = {},
): OpEntry => ({
  name,
  rule,
  eitherZero: true,
  draw: (random) => {
    const dtype = drawDType(random);
    const x = drawTensor(random, {
      dtype,
      shape: drawReducible(random),
      // Where partial sums overflow, the order decides what becomes of an Infinity.
      values: values?.(random) ?? (rule === 'exact' ? 'any' : random.pick(['powers', 'powers', 'offset'])),
    });
    const options = drawOptions(random, x.shape.length);
    const { dims = x.shape.map((_, i) => i), keepDims = false } = options;
    const whole = options.dims === undefined && !keepDims && !listsDims;
    return {
      operands: [x],
      ours: ([x]) => ours(tensorOf(x), options),
      torch: ([x]) =>
        whole ? `${torch}(${x})` : `${torch}(${x}, dim=${python(dims)}, keepdim=${python(keepDims)})`,
      terms: Math.max(1, foldedCount(x.shape, options)),
      exactAddends: exactAddends && dtype !== 'float64',
    };
  },
});

export const reductionOps: readonly OpEntry[] = [
  reduction('sum', t.sum, 'torch.sum', 'accumulated'),
  reduction('mean', t.mean, 'torch.mean', 'accumulated'),
  reduction('max', t.max, 'torch.amax', 'exact'),
];
