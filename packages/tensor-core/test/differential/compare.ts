import type { DType, TypedArray } from '../../src/index.ts';
import { RooflineError, sizeOf } from '../../src/index.ts';
import { decode } from './programs/host-data.ts';
import type { Program, Rule } from './programs/program.ts';
import type { Outcome, TensorOutcome } from './run-ours.ts';
import type { TorchOutcome, TorchTensor } from './torch/torch-server.ts';

// All tolerances of the differential tests are here. With u an element's unit in the last place, t PyTorch's error
// and e ours, both against float64:
//
//   exact        the same bits; any NaN is any other's equal.
//   rounded      e <= 2·max(t, b) + u, with t the largest error at this input and six near it, since at one
//                alone PyTorch may be lucky, and b what its functions promise: 1 u (SLEEF's bound), half a u in low
//                precision, which is rounded once from float32.
//   accumulated, and every gradient
//                e <= 2·t + u + 4·√terms·noise. The noise is the largest of 16 or 24 changes that roundings of relative
//                size ε/2 make when they are put at random into the float64 calculation: into each result, each
//                tensor saved, each gradient on its way and, for sums, each addend. Sums of n terms in order err by
//                √n times that; a factor of 4 covers that so few draws may miss the largest.
//   shape        only dtype and shape: random numbers, uninitialised memory.
//
// What is not finite in PyTorch must be the same in ours, unless ours keeps to float64's value within the tolerance, or
// unless float64's is finite: then a sum has overflowed on the way, and its order decides between Infinity and NaN.

export type MismatchKind =
  | 'accepts'
  | 'refuses'
  | 'foreign error'
  | 'count'
  | 'dtype'
  | 'shape'
  | 'requiresGrad'
  | 'aliasing'
  | 'value'
  | 'gradient missing'
  | 'gradient';

export interface Mismatch {
  readonly kind: MismatchKind;
  readonly detail: string;
}

/** The first difference between two outcomes of a program, or null. */
export function compareOutcomes(program: Program, ours: Outcome, torch: TorchOutcome): Mismatch | null {
  if (ours.error !== null) {
    const text = String(ours.error).split('\n')[0]!.slice(0, 300);
    if (!(ours.error instanceof RooflineError)) {
      return { kind: 'foreign error', detail: `${text} (PyTorch: ${torch.error ?? 'a result'})` };
    }
    return torch.error === null ? { kind: 'refuses', detail: text } : null;
  }
  if (torch.error !== null) return { kind: 'accepts', detail: torch.error };
  if (ours.outputs.length !== torch.outputs.length) {
    return { kind: 'count', detail: `${ours.outputs.length} results, PyTorch ${torch.outputs.length}` };
  }
  for (let i = 0; i < ours.outputs.length; i++) {
    const mismatch = compareResult(program, ours.outputs[i]!, torch.outputs[i]!);
    if (mismatch) return mismatch;
  }
  const overflowed = ours.outputs.some((output, i) => hasOverflowed(output, torch.outputs[i]!));
  for (let i = 0; i < ours.gradients.length; i++) {
    const mismatch = compareGradient({ ...program, overflowed }, i, ours.gradients[i]!, torch.gradients[i]!);
    if (mismatch) return mismatch;
  }
  return null;
}

function compareResult(program: Program, ours: TensorOutcome, torch: TorchTensor): Mismatch | null {
  if (ours.dtype !== torch.dtype) return { kind: 'dtype', detail: `${ours.dtype}, PyTorch ${torch.dtype}` };
  if (ours.shape.join() !== torch.shape.join()) {
    return { kind: 'shape', detail: `[${ours.shape.join()}], PyTorch [${torch.shape.join()}]` };
  }
  if (program.rule === 'shape') return null;
  if (ours.requiresGrad !== torch.requiresGrad) {
    return { kind: 'requiresGrad', detail: `${ours.requiresGrad}, PyTorch ${torch.requiresGrad}` };
  }
  if (program.aliasing && ours.aliases.join() !== torch.aliases.join()) {
    return {
      kind: 'aliasing',
      detail: `shares memory with [${ours.aliases.join()}], PyTorch with [${torch.aliases.join()}]`,
    };
  }
  const detail = compareElements(program, program.rule, ours.data, torch);
  return detail === null ? null : { kind: 'value', detail };
}

/**
 * Whether a low-precision result is infinite where float64's is finite. PyTorch for the CPU may lack the op there, and compute
 * it and its gradient in float32, where it has not overflowed: a product with it is finite there, and NaN here.
 */
function hasOverflowed({ dtype, data }: TensorOutcome, { reference }: TorchTensor): boolean {
  if (!isLow(dtype) || reference === null) return false;
  return decode(dtype, data).some((value, i) => !Number.isFinite(value) && Number.isFinite(reference[i]));
}

function compareGradient(
  program: Program & Overflow,
  input: number,
  ours: TensorOutcome | null,
  torch: TorchTensor | null,
): Mismatch | null {
  if (!ours || !torch) {
    if (!ours === !torch) return null;
    return { kind: 'gradient missing', detail: `of input ${input} in ${ours ? 'PyTorch' : 'ours'}` };
  }
  if (ours.dtype !== torch.dtype || ours.shape.join() !== torch.shape.join()) {
    return {
      kind: 'gradient',
      detail: `${ours.dtype} [${ours.shape.join()}] of ${torch.dtype} [${torch.shape.join()}]`,
    };
  }
  const rule = program.rule === 'shape' ? 'shape' : 'accumulated';
  const detail = compareElements({ ...program, terms: summedTerms(program, torch) }, rule, ours.data, torch);
  return detail === null ? null : { kind: 'gradient', detail: `of input ${input}: ${detail}` };
}

/** How many terms a sum in this gradient has: broadcasting sums over the uses of an element. */
function summedTerms({ terms, inputs }: Program, { shape }: TorchTensor): number {
  const largest = Math.max(...inputs.map((input) => sizeOf(input.shape)));
  return Math.max(terms, largest / Math.max(1, sizeOf(shape)));
}

interface Overflow {
  /** Whether NaN is accepted where PyTorch has a number. */
  readonly overflowed?: boolean;
}

/** Where and how far elements differ by more than the rule allows, or null. */
export function compareElements(
  { terms, eitherZero, overflowed }: Pick<Program, 'terms' | 'eitherZero'> & Overflow,
  rule: Rule,
  ours: TypedArray,
  torch: Pick<TorchTensor, 'dtype' | 'data' | 'reference' | 'noise'>,
): string | null {
  if (rule === 'shape') return null;
  const { dtype } = torch;
  const [a, b] = [decode(dtype, ours), decode(dtype, torch.data)];
  // Signed zeros are guaranteed only for values: a sum of gradients may come to either.
  const anyZero = eitherZero || rule === 'accumulated';
  for (let i = 0; i < a.length; i++) {
    if (ours[i] === torch.data[i] && (anyZero || Object.is(a[i], b[i]))) continue;
    if (Number.isNaN(a[i]) && (Number.isNaN(b[i]) || overflowed)) continue;
    if (anyZero && a[i] === 0 && b[i] === 0) continue;
    if (rule === 'exact' || torch.reference === null) {
      return `[${i}] is ${show(dtype, ours, i)}, PyTorch ${show(dtype, torch.data, i)}`;
    }
    const reference = torch.reference[i]!;
    if (rule === 'accumulated' && overflowsOnTheWay(a[i]!, b[i]!, reference)) continue;
    const allowed = tolerance(rule, dtype, reference, b[i]!, torch.noise![i]!, terms);
    const error = errorOf(dtype, a[i]!, reference);
    if (error <= allowed) continue;
    return (
      `[${i}] is ${show(dtype, ours, i)}, PyTorch ${show(dtype, torch.data, i)}, float64 ${reference}: ` +
      `error ${error.toPrecision(3)}, allowed ${allowed.toPrecision(3)}`
    );
  }
  return null;
}

/** Partial sums of either order may go beyond the dtype, where Infinity and NaN depend on the order. */
function overflowsOnTheWay(ours: number, torch: number, reference: number): boolean {
  return Number.isFinite(reference) && !Number.isFinite(torch) && !Number.isFinite(ours);
}

/** The distance of `value` from `reference`; 0 for equal infinities and where rounding exceeds the largest value. */
function errorOf(dtype: DType, value: number, reference: number): number {
  if (Object.is(value, reference) || value === reference) return 0;
  if (
    Math.abs(value) === Infinity &&
    Math.sign(value) === Math.sign(reference) &&
    overflows(dtype, reference)
  ) {
    return 0;
  }
  const error = Math.abs(value - reference);
  return Number.isNaN(error) ? Infinity : error;
}

function tolerance(
  rule: Rule,
  dtype: DType,
  reference: number,
  torch: number,
  noise: number,
  terms: number,
): number {
  const u = unitInTheLastPlace(dtype, reference);
  const torchError = errorOf(dtype, torch, reference);
  const known = Number.isFinite(torchError) ? torchError : 0;
  if (rule === 'rounded') return 2 * Math.max(known, noise, isLow(dtype) ? u / 2 : u) + u;
  return 2 * known + u + 4 * Math.sqrt(terms) * (Number.isFinite(noise) ? noise : 0);
}

interface Format {
  /** Bits of the significand after the point. */
  readonly fraction: number;
  /** The exponent of the smallest normal value, and of the largest. */
  readonly least: number;
  readonly most: number;
}

const formats: Partial<Record<DType, Format>> = {
  float16: { fraction: 10, least: -14, most: 15 },
  bfloat16: { fraction: 7, least: -126, most: 127 },
  float32: { fraction: 23, least: -126, most: 127 },
  float64: { fraction: 52, least: -1022, most: 1023 },
};

function isLow(dtype: DType): boolean {
  return dtype === 'float16' || dtype === 'bfloat16';
}

/** The distance between neighbours of `dtype` around `x`. */
export function unitInTheLastPlace(dtype: DType, x: number): number {
  const { fraction, least, most } = formats[dtype]!;
  if (!Number.isFinite(x)) return 0;
  const exponent = x === 0 ? least : Math.floor(Math.log2(Math.abs(x)));
  return 2 ** (Math.min(Math.max(exponent, least), most) - fraction);
}

function overflows(dtype: DType, x: number): boolean {
  const { fraction, most } = formats[dtype]!;
  return Math.abs(x) >= 2 ** most * (2 - 2 ** -fraction);
}

function show(dtype: DType, data: TypedArray, i: number): string {
  const value = data instanceof BigInt64Array ? data[i]! : decode(dtype, data.slice(i, i + 1))[0]!;
  return Object.is(value, -0) ? '-0' : String(value);
}
