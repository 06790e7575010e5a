import type { MemoryView } from '../../../base/memory-view.ts';
import type { StridedMemory } from '../../../base/memory-view.ts';
import type { DType } from '../../../base/dtype.ts';
import type { ComputeOp } from '../../../op/op.ts';
import type { Shape } from '../../../base/shape.ts';
import type { Launcher } from '@roofline/cuda/parts';
import {
  blockSize,
  densePointwiseSource,
  stridedPointwiseSource,
  vectorLengthOf,
} from './pointwise-kernel.ts';
import {
  type GeneratedKernel,
  type PointwiseVariant,
  maxOperands,
  placeScalars,
  variantOf,
  signatureOf,
  writeScalars,
} from './pointwise-variant.ts';
import {
  isNarrow,
  layoutBytes,
  stridedVectorLength,
  writeLayout,
} from '../../../op/kernel-arguments/strided-arguments.ts';
import { StridedLayout, collapse } from '../../../op/kernel-arguments/strided-layout.ts';
import { codeOf } from '../../../op/kernel-arguments/dtype-code.ts';

/** Makes the CUfunction of a generated source. */
export type GenerateKernel = (name: string, source: string) => number;

/** Elements that a strided kernel reads or writes; their addresses are passed separately. */
interface Elements {
  readonly dtype: DType;
  readonly shape: Shape;
  readonly strides: Shape;
}

const vectorBytes = 16;

// An operand's part of a kernel's key: its dtype's code, and whether it repeats.
const repeatsBit = 8;
const operandCodes = 16;

/**
 * Runs element-wise ops. Kernels are generated for each combination of dtypes and layouts, and looked up by a number, so that
 * a call costs well under a microsecond besides the launch.
 */
export class PointwiseRunner {
  readonly #launcher: Launcher;
  readonly #generate: GenerateKernel;
  readonly #variants = new WeakMap<object, Map<string, PointwiseVariant>>();
  readonly #copy: PointwiseVariant = {
    name: 'copy_strided',
    expressions: ['a'],
    values: [],
    read: [0],
    scalars: 0,
    kernels: new Map(),
  };
  // For the current call; reused, because eager ops should not allocate.
  readonly #layout = new StridedLayout();
  readonly #addresses = new Float64Array(maxOperands);

  constructor(launcher: Launcher, generate: GenerateKernel) {
    this.#launcher = launcher;
    this.#generate = generate;
  }

  /** Outputs are contiguous, or are inputs themselves where the op mutates. */
  run<A>(
    op: ComputeOp<A>,
    inputs: readonly MemoryView[],
    outputs: readonly MemoryView[],
    attributes: A,
  ): void {
    if (outputs[0]!.size === 0) return;
    const variant = this.#variant(op, inputs, outputs, attributes);
    const scalars = variant.scalars === 0 ? undefined : op.scalars!(attributes);
    if (this.#runDense(variant, inputs, outputs, scalars)) return;
    const { read } = variant;
    for (let i = 0; i < read.length; i++) this.#addresses[i] = inputs[read[i]!]!.address;
    for (let i = 0; i < outputs.length; i++) this.#addresses[read.length + i] = outputs[i]!.address;
    this.#runStrided(variant, inputs, outputs, scalars);
  }

  /** Copies elements between layouts of one shape and dtype. */
  copy(from: StridedMemory, to: StridedMemory): void {
    if (to.shape.includes(0)) return;
    const { shape, strides } = to;
    const dtype = asBits[to.dtype];
    this.#addresses[0] = from.address;
    this.#addresses[1] = to.address;
    const source = { shape: from.shape, strides: from.strides, dtype };
    this.#runStrided(this.#copy, [source], [{ shape, strides, dtype }], undefined);
  }

  #variant<A>(
    op: ComputeOp<A>,
    inputs: readonly MemoryView[],
    outputs: readonly MemoryView[],
    attributes: A,
  ): PointwiseVariant {
    let variants = this.#variants.get(op);
    if (!variants) {
      variants = new Map();
      this.#variants.set(op, variants);
    }
    const key = attributes === undefined ? '' : (op.variant?.(attributes) ?? JSON.stringify(attributes));
    let variant = variants.get(key);
    if (!variant) {
      variant = variantOf(op, inputs.length, outputs.length, attributes);
      variants.set(key, variant);
    }
    return variant;
  }

  /** Runs if every operand is dense and of one size, or a single element. Returns whether it ran. */
  #runDense(
    variant: PointwiseVariant,
    inputs: readonly MemoryView[],
    outputs: readonly MemoryView[],
    scalars: readonly number[] | undefined,
  ): boolean {
    const { read } = variant;
    const { size } = outputs[0]!;
    const memory = this.#launcher.arguments;
    let key = 0;
    let addressBits = 0;
    let offset = 0;
    for (let i = 0; i < read.length; i++) {
      const input = inputs[read[i]!]!;
      const address = input.address;
      let code = codeOf(input.dtype);
      if (input.size === size && input.isContiguous) addressBits |= address;
      else if (input.size === 1) code += repeatsBit;
      else return false;
      key = key * operandCodes + code;
      memory.writeInt64(offset, address);
      offset += 8;
    }
    for (let i = 0; i < outputs.length; i++) {
      const output = outputs[i]!;
      if (!output.isContiguous) return false;
      const address = output.address;
      addressBits |= address;
      key = key * operandCodes + codeOf(output.dtype);
      memory.writeInt64(offset, address);
      offset += 8;
    }
    const aligned = (addressBits & (vectorBytes - 1)) === 0;
    key = key * 2 + (aligned ? 1 : 0);
    const kernel = variant.kernels.get(key) ?? this.#makeDense(variant, key, inputs, outputs, aligned);
    memory.writeInt64(offset, size);
    if (scalars) writeScalars(memory, kernel, scalars);
    this.#launch(kernel, Math.ceil(size / kernel.vectorLength));
    return true;
  }

  #makeDense(
    variant: PointwiseVariant,
    key: number,
    inputs: readonly MemoryView[],
    outputs: readonly MemoryView[],
    aligned: boolean,
  ): GeneratedKernel {
    const { read } = variant;
    const signature = signatureOf(variant, inputs, outputs);
    const repeats = (i: number) => inputs[i]!.size !== outputs[0]!.size;
    const dense = read.filter((i) => !repeats(i)).map((i) => signature.inputs[i]!);
    const vectorLength = aligned ? vectorLengthOf([...dense, ...signature.outputs]) : 1;
    const source = densePointwiseSource(signature, read, new Set(read.filter(repeats)), vectorLength);
    const end = 8 * (read.length + outputs.length) + 8;
    return this.#keep(variant, key, { source, vectorLength, ...placeScalars(signature, end) });
  }

  /** `#addresses` holds the operands' addresses: of the inputs read, then of the outputs. */
  #runStrided(
    variant: PointwiseVariant,
    inputs: readonly Elements[],
    outputs: readonly Elements[],
    scalars: readonly number[] | undefined,
  ): void {
    const operands: Elements[] = [];
    for (let i = 0; i < variant.read.length; i++) operands.push(inputs[variant.read[i]!]!);
    for (let i = 0; i < outputs.length; i++) operands.push(outputs[i]!);
    const layout = this.#layout;
    collapse(layout, outputs[0]!.shape, operands);
    const wide = !isNarrow(layout);
    const inputCount = variant.read.length;
    const vectorLength = stridedVectorLength(layout, operands, this.#addresses, inputCount, vectorBytes);
    const memory = this.#launcher.arguments;
    let key = layout.rank * 2 + (wide ? 1 : 0);
    for (let o = 0; o < operands.length; o++) {
      key =
        key * operandCodes + codeOf(operands[o]!.dtype) + (this.#repeats(o, vectorLength) ? repeatsBit : 0);
      memory.writeInt64(8 * o, this.#addresses[o]!);
    }
    key = -(key * 32 + vectorLength);
    const kernel =
      variant.kernels.get(key) ?? this.#makeStrided(variant, key, inputs, outputs, vectorLength, wide);
    writeLayout(memory, 8 * operands.length, layout, vectorLength, wide);
    if (scalars) writeScalars(memory, kernel, scalars);
    this.#launch(kernel, layout.size / vectorLength);
  }

  /** Whether a vector of an operand is one element repeated. */
  #repeats(operand: number, vectorLength: number): boolean {
    return vectorLength > 1 && this.#layout.strideAt(operand, 0) === 0;
  }

  #makeStrided(
    variant: PointwiseVariant,
    key: number,
    inputs: readonly Elements[],
    outputs: readonly Elements[],
    vectorLength: number,
    wide: boolean,
  ): GeneratedKernel {
    const { read } = variant;
    const { rank } = this.#layout;
    const signature = signatureOf(variant, inputs, outputs);
    const broadcast = new Set(read.filter((_, o) => this.#repeats(o, vectorLength)));
    const source = stridedPointwiseSource(signature, read, { rank, wide, vectorLength, broadcast });
    const operands = read.length + outputs.length;
    const end = 8 * operands + layoutBytes(rank, operands, wide);
    return this.#keep(variant, key, { source, vectorLength, ...placeScalars(signature, end) });
  }

  #keep(
    variant: PointwiseVariant,
    key: number,
    { source, ...layout }: Omit<GeneratedKernel, 'handle'> & { source: string },
  ): GeneratedKernel {
    const kernel = { handle: this.#generate(variant.name, source), ...layout };
    variant.kernels.set(key, kernel);
    return kernel;
  }

  #launch({ handle, argumentBytes }: GeneratedKernel, vectors: number): void {
    this.#launcher.launch(handle, Math.ceil(vectors / blockSize), blockSize, argumentBytes);
  }
}

// The dtype that a copy moves elements as, so that fewer kernels serve all dtypes.
const asBits: Record<DType, DType> = {
  float32: 'int32',
  float16: 'float16',
  bfloat16: 'bfloat16',
  float64: 'int64',
  int32: 'int32',
  int64: 'int64',
  bool: 'bool',
};
