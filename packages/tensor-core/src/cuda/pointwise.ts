import { DTypeError } from '../errors.ts';
import { type DType, byteSize } from '../dtype.ts';
import type { ComputeOp, PointwiseKernel } from '../op.ts';
import type { Shape } from '../shape.ts';
import type { Tensor } from '../tensor.ts';
import { multiplierOf, shiftOf } from './divisor.ts';
import type { HostMemory } from './host-memory.ts';
import type { Launcher } from './launch.ts';
import {
  type PointwiseSignature,
  blockSize,
  densePointwiseSource,
  inputsRead,
  scalarDType,
  stridedPointwiseSource,
  vectorLengthOf,
} from './pointwise-kernel.ts';
import { StridedLayout, collapse } from './strided-layout.ts';
import { addressOfTensor, codeOf } from './tensor-address.ts';

/** What makes an op's generated kernels: its expressions, whatever the dtypes. */
interface Program {
  readonly name: string;
  readonly expressions: readonly string[];
  /** Indices of the inputs that the expressions read. */
  readonly read: readonly number[];
  readonly scalars: number;
  /** By the numeric key of dtypes and layouts. */
  readonly kernels: Map<number, GeneratedKernel>;
}

/** A loaded kernel and where its arguments go behind the pointers. */
interface GeneratedKernel {
  readonly handle: number;
  readonly vectorLength: number;
  readonly scalarDType: DType;
  readonly scalarOffset: number;
  readonly argumentBytes: number;
}

/** Elements of device memory that a kernel reads or writes. */
export interface Operand {
  readonly address: number;
  readonly dtype: DType;
  readonly shape: Shape;
  readonly strides: Shape;
}

/** Makes the CUfunction of a generated source. */
export type GenerateKernel = (name: string, source: string) => number;

const maxInputs = 8;
const maxOperands = 10;
const vectorBytes = 16;
const threadsPerMultiprocessor = 2048;
const narrowLimit = 2 ** 31;

/**
 * Runs ops of one value in, one value out. Kernels are generated for each combination of dtypes and layouts,
 * and found again by a number, so that a call costs well under a microsecond beside the launch.
 */
export class PointwiseRunner {
  readonly #launcher: Launcher;
  readonly #generate: GenerateKernel;
  readonly #maxBlocks: number;
  readonly #programs = new WeakMap<object, Map<string, Program>>();
  readonly #copy: Program = {
    name: 'copy_strided',
    expressions: ['a'],
    read: [0],
    scalars: 0,
    kernels: new Map(),
  };
  readonly #layout = new StridedLayout();

  constructor(launcher: Launcher, generate: GenerateKernel, multiprocessors: number) {
    this.#launcher = launcher;
    this.#generate = generate;
    this.#maxBlocks = multiprocessors * (threadsPerMultiprocessor / blockSize);
  }

  /** Outputs are contiguous, or are inputs themselves where the op mutates. */
  run<A>(op: ComputeOp<A>, inputs: readonly Tensor[], outputs: readonly Tensor[], attributes: A): void {
    const size = outputs[0]!.size;
    if (size === 0) return;
    const program = this.#program(op, inputs.length, outputs.length, attributes);
    const scalars = program.scalars === 0 ? undefined : op.scalars!(attributes);
    if (!this.#runDense(program, inputs, outputs, size, scalars)) {
      this.#runStrided(program, inputs.map(operandOf), outputs.map(operandOf), scalars);
    }
  }

  /** Copies elements between layouts of one shape and dtype. */
  copy(from: Operand, to: Operand): void {
    if (to.shape.includes(0)) return;
    const dtype = asBits[to.dtype];
    this.#runStrided(this.#copy, [{ ...from, dtype }], [{ ...to, dtype }], undefined);
  }

  #program<A>(op: ComputeOp<A>, inputCount: number, outputCount: number, attributes: A): Program {
    let variants = this.#programs.get(op);
    if (!variants) {
      variants = new Map();
      this.#programs.set(op, variants);
    }
    const variant = attributes === undefined ? '' : (op.variant?.(attributes) ?? JSON.stringify(attributes));
    let program = variants.get(variant);
    if (!program) {
      if (inputCount > maxInputs || inputCount + outputCount > maxOperands) {
        throw new DTypeError(
          `${op.name}: a pointwise op takes at most ${maxInputs} inputs and ${maxOperands} operands in all.`,
        );
      }
      const expressions = (op.cuda as PointwiseKernel<A>).expressions(attributes);
      program = {
        name: `pointwise_${op.name.replace(/\W/g, '_')}`,
        expressions,
        read: inputsRead(expressions, inputCount),
        scalars: op.scalars?.(attributes).length ?? 0,
        kernels: new Map(),
      };
      variants.set(variant, program);
    }
    return program;
  }

  /** Runs if every operand is dense and of one size, or a single element. Returns whether it did. */
  #runDense(
    program: Program,
    inputs: readonly Tensor[],
    outputs: readonly Tensor[],
    size: number,
    scalars: readonly number[] | undefined,
  ): boolean {
    const { read } = program;
    const memory = this.#launcher.arguments;
    let key = 0;
    let addressBits = 0;
    let offset = 0;
    for (let i = 0; i < read.length; i++) {
      const input = inputs[read[i]!]!;
      const address = addressOfTensor(input);
      let mode = codeOf(input.dtype);
      if (input.size === size && input.isContiguous) addressBits |= address;
      else if (input.size === 1) mode += broadcastBit;
      else return false;
      key = key * operandCodes + mode;
      memory.writeInt64(offset, address);
      offset += 8;
    }
    for (let i = 0; i < outputs.length; i++) {
      const output = outputs[i]!;
      if (!output.isContiguous) return false;
      const address = addressOfTensor(output);
      addressBits |= address;
      key = key * operandCodes + codeOf(output.dtype);
      memory.writeInt64(offset, address);
      offset += 8;
    }
    const aligned = (addressBits & (vectorBytes - 1)) === 0;
    key = key * 2 + (aligned ? 1 : 0);
    const kernel = program.kernels.get(key) ?? this.#makeDense(program, key, inputs, outputs, size, aligned);
    memory.writeInt64(offset, size);
    if (scalars) writeScalars(memory, kernel, scalars);
    this.#launch(kernel, Math.ceil(size / kernel.vectorLength));
    return true;
  }

  #makeDense(
    program: Program,
    key: number,
    inputs: readonly Tensor[],
    outputs: readonly Tensor[],
    size: number,
    aligned: boolean,
  ): GeneratedKernel {
    const signature = signatureOf(program, inputs, outputs);
    const isBroadcast = (i: number) => inputs[i]!.size !== size;
    const broadcast = new Set(program.read.filter(isBroadcast));
    const dense = program.read.filter((i) => !isBroadcast(i)).map((i) => signature.inputs[i]!);
    const vectorLength = aligned ? vectorLengthOf([...dense, ...signature.outputs]) : 1;
    const source = densePointwiseSource(signature, program.read, broadcast, vectorLength);
    return this.#make(
      program,
      key,
      signature,
      source,
      vectorLength,
      8 * (program.read.length + outputs.length) + 8,
    );
  }

  #runStrided(
    program: Program,
    inputs: readonly Operand[],
    outputs: readonly Operand[],
    scalars: readonly number[] | undefined,
  ): void {
    const layout = this.#layout;
    const operands = [...program.read.map((i) => inputs[i]!), ...outputs];
    collapse(layout, outputs[0]!.shape, operands.map(shapeOf), operands.map(stridesOf));
    const vectorLength = stridedVectorLength(layout, operands, program.read.length);
    const wide = !isNarrow(layout);
    let key = layout.rank * 2 + (wide ? 1 : 0);
    const memory = this.#launcher.arguments;
    operands.forEach(({ dtype, address }, o) => {
      const repeats = vectorLength > 1 && layout.strideAt(o, 0) === 0;
      key = key * operandCodes + codeOf(dtype) + (repeats ? broadcastBit : 0);
      memory.writeInt64(8 * o, address);
    });
    key = -(key * 5 + Math.log2(vectorLength)) - 1;
    const kernel =
      program.kernels.get(key) ?? this.#makeStrided(program, key, inputs, outputs, { vectorLength, wide });
    writeLayout(memory, 8 * operands.length, layout, vectorLength, wide);
    if (scalars) writeScalars(memory, kernel, scalars);
    this.#launch(kernel, layout.size / vectorLength);
  }

  #makeStrided(
    program: Program,
    key: number,
    inputs: readonly Operand[],
    outputs: readonly Operand[],
    { vectorLength, wide }: { vectorLength: number; wide: boolean },
  ): GeneratedKernel {
    const { read } = program;
    const { rank } = this.#layout;
    const signature = signatureOf(program, inputs, outputs);
    const repeats = (o: number) => vectorLength > 1 && this.#layout.strideAt(o, 0) === 0;
    const broadcast = new Set(read.filter((_, o) => repeats(o)));
    const source = stridedPointwiseSource(signature, read, { rank, wide, vectorLength, broadcast });
    const operands = read.length + outputs.length;
    const end = 8 * operands + layoutBytes(rank, operands, wide);
    return this.#make(program, key, signature, source, vectorLength, end);
  }

  #make(
    program: Program,
    key: number,
    signature: PointwiseSignature,
    source: string,
    vectorLength: number,
    end: number,
  ): GeneratedKernel {
    const dtype = scalarDType(signature);
    const bytes = byteSize(dtype);
    const scalarOffset = Math.ceil(end / bytes) * bytes;
    const kernel = {
      handle: this.#generate(program.name, source),
      vectorLength,
      scalarDType: dtype,
      scalarOffset,
      argumentBytes: program.scalars > 0 ? scalarOffset + bytes * program.scalars : end,
    };
    program.kernels.set(key, kernel);
    return kernel;
  }

  #launch({ handle, argumentBytes }: GeneratedKernel, vectors: number): void {
    const blocks = Math.min(Math.ceil(vectors / blockSize), this.#maxBlocks);
    this.#launcher.launch(handle, blocks, blockSize, argumentBytes);
  }
}

// An operand's part of a kernel's key: a dtype's code, and whether it repeats.
const broadcastBit = 8;
const operandCodes = 16;

function operandOf(tensor: Tensor): Operand {
  const { dtype, shape, strides } = tensor;
  return { address: addressOfTensor(tensor), dtype, shape, strides };
}

function shapeOf({ shape }: Operand): Shape {
  return shape;
}

function stridesOf({ strides }: Operand): Shape {
  return strides;
}

function signatureOf(
  { name, expressions, scalars }: Program,
  inputs: readonly { dtype: DType }[],
  outputs: readonly { dtype: DType }[],
): PointwiseSignature {
  const dtypes = (operands: readonly { dtype: DType }[]) => operands.map(({ dtype }) => dtype);
  return { name, expressions, scalars, inputs: dtypes(inputs), outputs: dtypes(outputs) };
}

// What a copy moves the elements as, so that fewer kernels serve all dtypes.
const asBits: Record<DType, DType> = {
  float32: 'int32',
  float16: 'float16',
  bfloat16: 'bfloat16',
  float64: 'int64',
  int32: 'int32',
  int64: 'int64',
  bool: 'bool',
};

function isNarrow(layout: StridedLayout): boolean {
  if (layout.size >= narrowLimit) return false;
  for (let o = 0; o < layout.operands; o++) if (layout.extentOf(o) >= narrowLimit) return false;
  return true;
}

/** The longest vector along the innermost dimension that all operands allow. */
function stridedVectorLength(layout: StridedLayout, operands: readonly Operand[], readCount: number): number {
  let length = vectorLengthOf(operands.map(({ dtype }) => dtype));
  while (
    length > 1 &&
    !operands.every((operand, o) => allowsVector(layout, operand, o, o < readCount, length))
  ) {
    length /= 2;
  }
  return length;
}

function allowsVector(
  layout: StridedLayout,
  { address, dtype }: Operand,
  operand: number,
  isInput: boolean,
  length: number,
): boolean {
  if (layout.lengths[0]! % length !== 0) return false;
  const inner = layout.strideAt(operand, 0);
  if (inner === 0) return isInput;
  if (inner !== 1 || address % (length * byteSize(dtype)) !== 0) return false;
  for (let d = 1; d < layout.rank; d++) if (layout.strideAt(operand, d) % length !== 0) return false;
  return true;
}

function layoutBytes(rank: number, operands: number, wide: boolean): number {
  return wide ? 8 * (1 + rank + operands * rank) : 4 * (1 + 3 * rank + operands * rank);
}

/** Writes the Layout that the generated kernel declares, its innermost dimension counted in vectors. */
function writeLayout(
  memory: HostMemory,
  offset: number,
  layout: StridedLayout,
  vectorLength: number,
  wide: boolean,
): void {
  const { rank, operands, lengths } = layout;
  const lengthOf = (d: number) => (d === 0 ? lengths[0]! / vectorLength : lengths[d]!);
  const strideOf = (o: number, d: number) => layout.strideAt(o, d) * (d === 0 ? vectorLength : 1);
  if (wide) {
    memory.writeInt64(offset, layout.size / vectorLength);
    for (let d = 0; d < rank; d++) memory.writeInt64(offset + 8 * (1 + d), lengthOf(d));
    for (let o = 0; o < operands; o++) {
      for (let d = 0; d < rank; d++)
        memory.writeInt64(offset + 8 * (1 + rank + o * rank + d), strideOf(o, d));
    }
    return;
  }
  const { words } = memory;
  const start = offset / 4;
  words[start] = layout.size / vectorLength;
  for (let d = 0; d < rank; d++) {
    const length = lengthOf(d);
    words[start + 1 + d] = length;
    words[start + 1 + rank + d] = multiplierOf(length);
    words[start + 1 + 2 * rank + d] = shiftOf(length);
  }
  for (let o = 0; o < operands; o++) {
    for (let d = 0; d < rank; d++) words[start + 1 + (3 + o) * rank + d] = strideOf(o, d);
  }
}

function writeScalars(memory: HostMemory, kernel: GeneratedKernel, scalars: readonly number[]): void {
  const { scalarDType, scalarOffset } = kernel;
  for (let i = 0; i < scalars.length; i++) {
    const value = scalars[i]!;
    if (scalarDType === 'float32') memory.floats[scalarOffset / 4 + i] = value;
    else if (scalarDType === 'float64') memory.doubles[scalarOffset / 8 + i] = value;
    else if (scalarDType === 'int32') memory.words[scalarOffset / 4 + i] = value;
    else if (scalarDType === 'int64') memory.writeInt64(scalarOffset + 8 * i, value);
    else memory.bytes[scalarOffset + i] = value === 0 ? 0 : 1;
  }
}
