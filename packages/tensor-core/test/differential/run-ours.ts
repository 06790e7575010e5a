import * as t from '../../src/index.ts';
import type { DType, Device, Shape, Tensor, TypedArray } from '../../src/index.ts';
import { encode } from './programs/host-data.ts';
import type { Operand, Program } from './programs/program.ts';
import { makeBase, viewOf } from './programs/tensor-input.ts';

export interface TensorOutcome {
  readonly dtype: DType;
  readonly shape: Shape;
  readonly data: TypedArray;
  readonly requiresGrad: boolean;
  /** The inputs whose memory it shares. */
  readonly aliases: readonly number[];
}

/** What a program gave, or the error that it ended in. */
export type Outcome =
  | { readonly error: Error }
  | {
      readonly error: null;
      /** The last step's results and, where the program writes in place, the bases. */
      readonly outputs: readonly TensorOutcome[];
      /** Of each base that requires one; null where none arrived. */
      readonly gradients: readonly (TensorOutcome | null)[];
    };

/** The gradient that backward starts from: quarters, which every floating-point dtype holds. */
export function seedGradient(dtype: DType, size: number): TypedArray {
  return encode(
    dtype,
    Array.from({ length: size }, (_, i) => (((i * 7 + 3) % 13) - 6) / 4),
  );
}

export function runOurs(program: Program, device: Device): Outcome {
  try {
    return t.scope(() => execute(program, device));
  } catch (error) {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }
}

function execute(program: Program, device: Device): Outcome {
  const bases: Tensor[] = [];
  for (const input of program.inputs) {
    bases.push(input.aliasOf === undefined ? makeBase(input, device) : bases[input.aliasOf]!);
  }
  const registers: Tensor[] = bases.map((base, i) => viewOf(base, program.inputs[i]!));
  let results: readonly Tensor[] = [];
  for (const step of program.steps) {
    const operands = step.operands.map((operand): Operand =>
      typeof operand === 'number' ? operand : registers[operand.register]!,
    );
    const result = step.ours(operands, device);
    results = result instanceof t.Tensor ? [result] : result;
    registers.push(...results);
  }
  const root = program.mutates
    ? undefined
    : results.find((result) => result.requiresGrad && t.isFloatingPoint(result.dtype));
  const outputs = (program.mutates ? bases : results).map((tensor) => outcomeOf(tensor, bases));
  if (root)
    root.backward(
      t.fromTypedArray(seedGradient(root.dtype, root.size), root.shape, { dtype: root.dtype, device }),
    );
  const gradients = bases.map((base) => base.grad && outcomeOf(base.grad, []));
  return { error: null, outputs, gradients };
}

function outcomeOf(tensor: Tensor, bases: readonly Tensor[]): TensorOutcome {
  const { dtype, shape, requiresGrad } = tensor;
  const aliases = bases.flatMap((base, i) => (base.storage === tensor.storage && tensor.size > 0 ? [i] : []));
  return { dtype, shape, data: tensor.toTypedArray(), requiresGrad, aliases };
}
