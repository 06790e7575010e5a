import type { DType, Shape } from '../../../src/index.ts';
import { Tensor, isFloatingPoint } from '../../../src/index.ts';
import type { Operand, Rule } from '../programs/program.ts';
import type { RandomSource } from '../programs/random-source.ts';
import { type TensorChoices, type TensorInput, drawShape, drawTensor } from '../programs/tensor-input.ts';
import type { ValueKind } from '../programs/values.ts';

/** An operand that the call gave as a tensor. */
export function tensorOf(operand: Operand | undefined): Tensor {
  if (!(operand instanceof Tensor)) throw new Error('The table gave a number where its op takes a tensor.');
  return operand;
}

export function tensorsOf(operands: readonly Operand[]): Tensor[] {
  return operands.map(tensorOf);
}

/** A shape that broadcasts with `shape`: lengths of one, fewer dimensions, none at all; rarely one that does not. */
export function drawBroadcast(random: RandomSource, shape: Shape): Shape {
  return random.weighted<() => Shape>([
    [45, () => shape],
    [20, () => shape.map((length) => (random.chance(0.5) ? 1 : length))],
    [15, () => shape.slice(random.integer(0, shape.length))],
    [15, () => []],
    [3, () => drawShape(random)],
  ])();
}

/** A JavaScript number: an integer, a fraction or, rarely, something that is neither. */
export function drawNumber(random: RandomSource): number {
  return random.weighted<() => number>([
    [40, () => random.integer(-3, 4)],
    [45, () => random.integer(-12, 12) / 4],
    [5, () => random.pick([NaN, Infinity, -Infinity, -0])],
    [10, () => random.pick([1e-10, 1e10, 0.1, 300.7])],
  ])();
}

/** Where partial results would overflow in float64, there is no wider dtype as a reference. */
export function withoutOverflow(dtype: DType): ValueKind {
  return dtype === 'float64' ? 'powers' : 'any';
}

/** Two operands that mostly broadcast, of one dtype or two; one of them may be a number. */
export function drawPair(random: RandomSource, choices: TensorChoices = {}): (TensorInput | number)[] {
  const first = drawTensor(random, choices);
  const kind = random.weighted([
    [20, 'number right'],
    [10, 'number left'],
    [40, 'same dtype'],
    [30, 'any dtype'],
  ]);
  if (kind === 'number right') return [first, drawNumberBeside(random, first)];
  if (kind === 'number left') return [drawNumberBeside(random, first), first];
  const dtype = kind === 'same dtype' ? first.dtype : choices.dtype;
  const second = drawTensor(random, { ...choices, dtype, shape: drawBroadcast(random, first.shape) });
  return random.chance(0.5) ? [first, second] : [second, first];
}

/** A number; with integers never -0, which is an integer here and a fraction in Python. */
export function drawNumberBeside(random: RandomSource, { dtype }: TensorInput): number {
  const value = drawNumber(random);
  return Object.is(value, -0) && !isFloatingPoint(dtype) ? 0 : value;
}

/**
 * A number with a low-precision operand is taken as it is, as on GPUs; PyTorch's kernels for the CPU round some of them to the
 * tensor's dtype first, so that only the bound of a rounded result holds there.
 */
export function ruleOfPair(rule: Rule, operands: readonly (TensorInput | number)[]): Rule {
  const number = operands.some((operand) => typeof operand === 'number');
  const low = operands.some((operand) => typeof operand !== 'number' && /float16/.test(operand.dtype));
  return number && low ? 'rounded' : rule;
}

/** A dimension of `rank`, counted from either end; rarely one that does not exist. */
export function drawDimension(random: RandomSource, rank: number): number {
  if (random.chance(0.03)) return random.pick([rank, -rank - 1, rank + 3]);
  return rank === 0 ? random.pick([0, -1]) : random.integer(-rank, rank - 1);
}
