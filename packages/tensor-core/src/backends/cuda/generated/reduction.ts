import type { MemoryView } from '../../../base/memory-view.ts';
import type { ReductionKernel } from '../../../op/cuda-lowering.ts';
import { byteSize, type DType } from '../../../base/dtype.ts';
import { DeviceError } from '@roofline/cuda/host';
import type { ComputeOp } from '../../../op/op.ts';
import { contiguousStrides, sizeOf } from '../../../base/shape.ts';
import type { Launcher } from '@roofline/cuda/parts';
import type { GenerateKernel, PointwiseRunner } from './pointwise.ts';
import { blockSize } from './pointwise-kernel.ts';
import {
  accumulatorDType,
  centersOffset,
  countOffset,
  reductionArgumentBytes,
  reductionSource,
} from './reduction-kernel.ts';
import { type FoldedShape, type ReductionPass, foldedShape, planReduction } from './reduction-plan.ts';
import { codeOf } from '../../../op/kernel-arguments/dtype-code.ts';

/** Hands out memory that lives until the current op has been queued. */
export type Workspace = (byteLength: number) => number;

/** Where one pass reads and writes. */
interface PassOperands {
  readonly input: number;
  readonly inputDType: DType;
  readonly output: number;
  readonly outputDType: DType;
  /** The address of what a kernel's term reads; absent if it has none, and in a second pass. */
  readonly centers?: number;
}

const vectorBytes = 16;

/** Runs ops that fold dimensions, with generated kernels looked up by a number. */
export class ReductionRunner {
  readonly #launcher: Launcher;
  readonly #generate: GenerateKernel;
  readonly #pointwise: PointwiseRunner;
  readonly #workspace: Workspace;
  readonly #multiprocessors: number;
  readonly #kernels = new WeakMap<object, Map<number, number>>();

  constructor(
    launcher: Launcher,
    generate: GenerateKernel,
    pointwise: PointwiseRunner,
    workspace: Workspace,
    multiprocessors: number,
  ) {
    this.#launcher = launcher;
    this.#generate = generate;
    this.#pointwise = pointwise;
    this.#workspace = workspace;
    this.#multiprocessors = multiprocessors;
  }

  run<A>(op: ComputeOp<A>, [input, centers]: readonly MemoryView[], output: MemoryView, attributes: A): void {
    if (output.size === 0) return;
    const dims = (attributes as { readonly dims?: readonly number[] }).dims;
    if (!dims) throw new DeviceError(`${op.name}: a reduction's attributes must name the folded \`dims\`.`);
    if (centers) checkCenters(op.name, centers, accumulatorDType(input!.dtype, output.dtype), output);
    let folded = input!.isContiguous ? foldedShape(input!.shape, dims) : null;
    let address = input!.address;
    if (!folded) {
      folded = { outer: output.size, length: input!.size / output.size, inner: 1 };
      address = this.#moveFoldedLast(input!, dims);
    }
    const operands = {
      input: address,
      inputDType: input!.dtype,
      output: output.address,
      outputDType: output.dtype,
      ...(centers && { centers: centers.address }),
    };
    this.#fold(op, folded, operands);
  }

  /** A dense copy of `input` with the folded dimensions last. */
  #moveFoldedLast(input: MemoryView, dims: readonly number[]): number {
    const order = [...input.shape.keys()].filter((d) => !dims.includes(d)).concat(dims);
    const shape = order.map((d) => input.shape[d]!);
    const strides = order.map((d) => input.strides[d]!);
    const { dtype } = input;
    const pointer = this.#workspace(sizeOf(shape) * byteSize(dtype));
    this.#pointwise.copy(
      { address: input.address, dtype, shape, strides },
      { address: pointer, dtype, shape, strides: contiguousStrides(shape) },
    );
    return pointer;
  }

  #fold<A>(op: ComputeOp<A>, folded: FoldedShape, operands: PassOperands): void {
    const { input, inputDType, output, outputDType, centers } = operands;
    const accumulator = accumulatorDType(inputDType, outputDType);
    const pass = this.#plan(folded, input, inputDType);
    if (pass.chunks === 1) {
      this.#launch(op, folded, pass, operands, accumulator, folded.length);
      return;
    }
    const { outer, inner } = folded;
    const partials = this.#workspace(outer * pass.chunks * inner * byteSize(accumulator));
    const first = {
      ...{ input, inputDType, output: partials, outputDType: accumulator },
      ...(centers !== undefined && { centers }),
    };
    this.#launch(op, folded, pass, first, accumulator, null);
    const rest = { outer, length: pass.chunks, inner };
    const second = { input: partials, inputDType: accumulator, output, outputDType };
    this.#launch(op, rest, this.#plan(rest, partials, accumulator, 0), second, accumulator, folded.length);
  }

  #plan(
    folded: FoldedShape,
    address: number,
    dtype: DType,
    multiprocessors = this.#multiprocessors,
  ): ReductionPass {
    const widest = (address & (vectorBytes - 1)) === 0 ? vectorBytes / byteSize(dtype) : 1;
    return planReduction(folded, widest, multiprocessors);
  }

  /** `count` is what `finish` divides by; null for the first of two passes, which does not finish. */
  #launch<A>(
    op: ComputeOp<A>,
    { outer, length, inner }: FoldedShape,
    pass: ReductionPass,
    { input, inputDType, output, outputDType, centers }: PassOperands,
    accumulator: DType,
    count: number | null,
  ): void {
    const hasTerm = centers !== undefined;
    const handle = this.#kernel(op, pass, inputDType, outputDType, accumulator, count !== null, hasTerm);
    const memory = this.#launcher.arguments;
    memory.writeInt64(0, input);
    memory.writeInt64(8, output);
    memory.writeInt64(16, outer);
    memory.writeInt64(24, length);
    memory.writeInt64(32, inner);
    memory.writeInt64(40, pass.chunk);
    memory.writeInt64(48, pass.chunks);
    if (accumulator === 'float32') memory.floats[countOffset / 4] = count ?? 0;
    else if (accumulator === 'float64') memory.doubles[countOffset / 8] = count ?? 0;
    else memory.writeInt64(countOffset, count ?? 0);
    if (hasTerm) memory.writeInt64(centersOffset, centers);
    this.#launcher.launch(handle, pass.blocks, blockSize, reductionArgumentBytes(accumulator, hasTerm));
  }

  #kernel<A>(
    op: ComputeOp<A>,
    { kind, width, vectorLength }: ReductionPass,
    input: DType,
    output: DType,
    accumulator: DType,
    finishes: boolean,
    hasTerm: boolean,
  ): number {
    let kernels = this.#kernels.get(op);
    if (!kernels) {
      kernels = new Map();
      this.#kernels.set(op, kernels);
    }
    const shapeCode = (kind === 'rows' ? 0 : 2) + (width === blockSize ? 1 : 0);
    const key =
      (((codeOf(input) * 8 + codeOf(output)) * 4 + shapeCode) * 32 + vectorLength) * 4 +
      (hasTerm ? 2 : 0) +
      (finishes ? 1 : 0);
    let handle = kernels.get(key);
    if (handle === undefined) {
      const { identity, term, combine, finish } = op.cuda as ReductionKernel;
      const name = `reduce_${op.name.replace(/\W/g, '_')}_${kind}`;
      const signature = {
        ...{ name, input, output, accumulator, identity, combine },
        term: hasTerm ? term : undefined,
        finish: finishes ? finish : 'x',
      };
      handle = this.#generate(name, reductionSource(signature, { kind, width, vectorLength }));
      kernels.set(key, handle);
    }
    return handle;
  }
}

function checkCenters(op: string, centers: MemoryView, dtype: DType, output: MemoryView): void {
  if (centers.isContiguous && centers.dtype === dtype && centers.size === output.size) return;
  throw new DeviceError(
    `${op}: the centers of a reduction must be contiguous, ${dtype} and as many as its results, ${output.size}.`,
  );
}
