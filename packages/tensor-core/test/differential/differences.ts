import { decode } from './programs/host-data.ts';
import type { Program } from './programs/program.ts';
import { type Mismatch, unitInTheLastPlace } from './compare.ts';

/** An intended difference from PyTorch. The package's README lists each. */
export interface Difference {
  /** The words that the README's list has for it. */
  readonly title: string;
  readonly applies: (program: Program, mismatch: Mismatch) => boolean;
}

const isInteger = (dtype: string) => dtype === 'int32' || dtype === 'int64' || dtype === 'bool';

export const differences: readonly Difference[] = [
  {
    title: '`silu` and `gelu` of integers',
    // PyTorch: '"silu_cpu" not implemented for \'Long\''.
    applies: ({ name, inputs }, { kind, detail }) =>
      (name === 'silu' || name === 'gelu') &&
      kind === 'accepts' &&
      isInteger(inputs[0]!.dtype) &&
      detail.includes('not implemented for'),
  },
  {
    title: '`mean` of integers',
    // PyTorch: "could not infer output dtype".
    applies: ({ name, inputs }, { kind, detail }) =>
      name === 'mean' && kind === 'accepts' && isInteger(inputs[0]!.dtype) && detail.includes('output dtype'),
  },
  {
    title: '`softmax` and `logSoftmax` of integers without elements',
    // PyTorch refuses integers too, but first checks whether there are elements.
    applies: ({ name, inputs }, { kind, detail }) =>
      (name === 'softmax' || name === 'logSoftmax') &&
      kind === 'refuses' &&
      isInteger(inputs[0]!.dtype) &&
      inputs[0]!.shape.includes(0) &&
      detail.startsWith('DTypeError'),
  },
  {
    title: 'Products of integers',
    // cuBLASLt has none of int32 and int64.
    applies: ({ name, inputs }, { kind, detail }) =>
      products.has(name) &&
      kind === 'refuses' &&
      isInteger(inputs[0]!.dtype) &&
      detail.startsWith('DTypeError'),
  },
  {
    title: '`fillInPlace` of an expanded tensor',
    applies: ({ name }, { kind, detail }) =>
      name === 'fillInPlace' && kind === 'refuses' && detail.includes('lie at one place'),
  },
  {
    title: '`copyInPlace` of an expanded tensor onto itself',
    // PyTorch 2 sees that there is nothing to do before it looks at the target.
    applies: ({ name }, { kind, detail }) =>
      name === 'copyInPlace' && kind === 'refuses' && detail.includes('lie at one place'),
  },
  {
    title: '`tanh` in float32 on the CPU',
    // ONNX Runtime's, compared to float64 at every float32 from 2^-20 to 2^5. Its slope is 1 - tanh².
    applies: ({ name, inputs }, { kind, detail }) => {
      if (name !== 'tanh' || inputs[0]!.dtype !== 'float32') return false;
      const error = numberBehind(/error (\S+?),/, detail);
      const unit = unitInTheLastPlace('float32', numberBehind(/float64 (\S+?):/, detail));
      if (kind === 'value') return error <= Math.max(6 * unit, 2 ** -141);
      return kind === 'gradient' && error <= largestSeed * 2 * 6 * 2 ** -24;
    },
  },
  {
    title: 'Numbers that an integer dtype cannot hold',
    // PyTorch wraps them around, or raises, depending on the op.
    applies: (_, { kind, detail }) => kind === 'refuses' && / is no int(32|64), which holds/.test(detail),
  },
  {
    title: "JavaScript's numbers",
    // PyTorch's kernels for the CPU round them to the tensor's dtype, and raise where that overflows.
    applies: ({ name }, { kind, detail }) =>
      (name === 'pow' || name === 'clamp') &&
      kind === 'accepts' &&
      /value cannot be converted to type .* without overflow/.test(detail),
  },
  {
    title: '`clamp` with NaN as its only bound',
    applies: ({ name, steps }, { kind, detail }) =>
      name === 'clamp' && kind === 'value' && detail.includes('is NaN') && steps[0]!.operands.includes(NaN),
  },
  {
    title: 'The gradient of `pow` with an exponent of bools',
    applies: ({ name, inputs }, { kind, detail }) =>
      name === 'pow' &&
      kind === 'accepts' &&
      inputs.some(({ dtype }) => dtype === 'bool') &&
      detail.includes('with a bool tensor is not supported'),
  },
  {
    title: '`layerNorm` of a variance beyond float32',
    // The standard deviation is infinite, and PyTorch multiplies by its inverse, 0.
    applies: ({ name, inputs }, { detail }) =>
      name === 'layerNorm' &&
      detail.includes('is NaN') &&
      inputs[0]!.dtype !== 'float64' &&
      decode(inputs[0]!.dtype, inputs[0]!.data).some((x) => Number.isFinite(x) && Math.abs(x) >= 2 ** 62),
  },
  {
    title: '`pow` of -Infinity by the number 0.5 or -0.5',
    // PyTorch takes a square root.
    applies: ({ name, steps }, { detail }) =>
      name === 'pow' &&
      steps[0]!.operands.some((operand) => operand === 0.5 || operand === -0.5) &&
      detail.includes('PyTorch NaN'),
  },
  {
    title: '`clamp` of bools',
    // PyTorch refuses numbers as bounds of bools, and takes bool tensors.
    applies: ({ name, inputs }, { kind, detail }) =>
      name === 'clamp' &&
      kind === 'refuses' &&
      inputs[0]!.dtype === 'bool' &&
      detail.startsWith('DTypeError'),
  },
  {
    title: 'Gradients of `variance` and `std` of too few elements',
    // 0/0, which PyTorch's formula sometimes makes an infinity.
    applies: ({ name }, { kind, detail }) =>
      (name === 'variance' || name === 'var' || name === 'std') &&
      kind === 'gradient' &&
      detail.includes('is NaN'),
  },
];

const products = new Set(['matmul', 'linear', 'einsum']);

/** The largest magnitude among the gradients that backward starts from. */
const largestSeed = 1.5;

/** A number in the description of a mismatch. */
function numberBehind(pattern: RegExp, detail: string): number {
  return Number(pattern.exec(detail)?.[1] ?? NaN);
}

export function differenceOf(program: Program, mismatch: Mismatch): Difference | null {
  return differences.find(({ applies }) => applies(program, mismatch)) ?? null;
}
