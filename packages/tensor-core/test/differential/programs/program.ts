import type { Device, Tensor } from '../../../src/index.ts';
import type { RandomSource } from './random-source.ts';
import type { TensorInput } from './tensor-input.ts';

export type Operand = Tensor | number;

/** What is bounded how; see compare.ts. */
export type Rule = 'exact' | 'rounded' | 'accumulated' | 'shape';

/** One call of an op: its operands, and how each side calls it. */
export interface Call {
  readonly operands: readonly (TensorInput | number)[];
  readonly ours: (operands: readonly Operand[], device: Device) => Tensor | readonly Tensor[];
  /** A Python expression over the operands' names. */
  readonly torch: (operands: readonly string[]) => string;
  /** The number of terms of the longest sum inside; default 1. */
  readonly terms?: number;
  /** Where it is not the entry's. */
  readonly rule?: Rule;
  /** Whether not even its addends may be rounded: it computes what it sums in a wider dtype. */
  readonly exactAddends?: boolean;
}

/** How a public op is tried. */
export interface OpEntry {
  /** Its name in the package's index. */
  readonly name: string;
  readonly rule: Rule;
  /** Draws a call from everything that the op takes, and some that it must refuse. */
  readonly draw: (random: RandomSource) => Call;
  /** Whether its result must lie in the same memory as PyTorch's does, where that is an operand's. */
  readonly aliasing?: boolean;
  /** Whether it writes to an operand: then all bases are compared, and there is no backward pass. */
  readonly mutates?: boolean;
  /** Where PyTorch's own vectorised code gives either zero: -0 and 0 are the same. */
  readonly eitherZero?: boolean;
  /** Whether low-precision operands give float32: PyTorch's result is then not rounded back. */
  readonly keepsFloat32?: boolean;
}

/** A register of a program: its inputs, then the results of its steps. */
export interface Register {
  readonly register: number;
}

export interface Step {
  readonly operands: readonly (Register | number)[];
  readonly ours: Call['ours'];
  readonly torch: Call['torch'];
}

/** Inputs and the steps that work on them; the last step's result is compared, and backward starts from it. */
export interface Program {
  /** The op's name, or `chain`. */
  readonly name: string;
  readonly seed: number;
  readonly inputs: readonly TensorInput[];
  readonly steps: readonly Step[];
  readonly rule: Rule;
  readonly terms: number;
  readonly exactAddends: boolean;
  readonly aliasing: boolean;
  readonly mutates: boolean;
  readonly eitherZero: boolean;
  readonly keepsFloat32: boolean;
}

/** The program that calls one op once. */
export function programOf(entry: OpEntry, seed: number, call: Call): Program {
  const inputs = call.operands.filter((operand): operand is TensorInput => typeof operand !== 'number');
  let register = 0;
  const operands = call.operands.map((operand) =>
    typeof operand === 'number' ? operand : { register: register++ },
  );
  return {
    name: entry.name,
    seed,
    inputs,
    steps: [{ operands, ours: call.ours, torch: call.torch }],
    rule: call.rule ?? entry.rule,
    terms: call.terms ?? 1,
    exactAddends: call.exactAddends ?? false,
    aliasing: entry.aliasing ?? false,
    mutates: entry.mutates ?? false,
    eitherZero: entry.eitherZero ?? false,
    keepsFloat32: entry.keepsFloat32 ?? false,
  };
}

/** The steps as Python statements' right-hand sides; registers are r0, r1... */
export function torchSteps({ steps }: Program): string[] {
  return steps.map(({ operands, torch }) =>
    torch(
      operands.map((operand) => (typeof operand === 'number' ? python(operand) : `r${operand.register}`)),
    ),
  );
}

/** A value as Python writes it. A whole JavaScript number is an int there, as it counts as one here. */
export function python(value: number | boolean | string | readonly number[] | undefined): string {
  if (value === undefined) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'string') return value;
  if (typeof value !== 'number') return `[${value.map(python).join(', ')}]`;
  if (Number.isNaN(value)) return `float('nan')`;
  if (!Number.isFinite(value)) return `float('${value > 0 ? 'inf' : '-inf'}')`;
  if (Object.is(value, -0)) return '-0.0';
  return Number.isInteger(value) ? BigInt(value).toString() : String(value);
}
