import type { CudaContext, MatmulRequest } from '../../../op/cuda-lowering.ts';
import type { CudaDriver, Scratch } from '@roofline/cuda/parts';
import type { KernelSpec } from '@roofline/cuda';
import { TensorMapEncoder } from '@roofline/cuda/parts';
import { HostMemory } from '@roofline/cuda/host';
import { kernelSource } from '../../../op/kernel-arguments/kernel-source.ts';
import type { Float32Product } from './matmul.ts';
import { matmulParams, splitOperand } from './matmul-split-half-structs.ts';
import {
  type SplitHalfMatmulPlan,
  type SplitHalfOperandLayout,
  layoutSplitHalfOperand,
  modelSplitHalfUs,
  planSplitHalfMatmul,
  splitHalfDefines,
  splitHalfThreads,
} from './matmul-split-half-plan.ts';

/** A stored operand: one matrix, or one for each product of the batch. */
interface StoredOperand {
  readonly pointer: number;
  readonly rows: number;
  readonly columns: number;
  readonly pitch: number;
  readonly batch: number;
  readonly batchStride: number;
  /** Whether K, whose blocks of 64 share a scale, runs down the columns. */
  readonly linesAreColumns: boolean;
}

/** The addresses of a split operand. */
interface SplitOperand {
  readonly planes: number;
  readonly summaries: number;
  readonly factors: number;
}

/** The plan for all requests of one shape. */
interface ShapePlan {
  readonly matmul: SplitHalfMatmulPlan;
  readonly kernel: KernelSpec;
  readonly a: SplitHalfOperandLayout;
  readonly b: SplitHalfOperandLayout;
}

const splitKernel: KernelSpec = {
  source: kernelSource('matmul/split_half.cu'),
  name: 'split_half',
  parameters: 'T',
};

// Measured for cublasLt's SGEMM on such a GPU, to choose between the two.
const sgemmFlopsPerUs = 45e6;
const sgemmLaunchUs = 4;

/**
 * float32 products on Hopper's tensor cores at float32 accuracy: both operands are split into pairs of fp16 planes, then
 * multiplied by three fp16 products. The kernels' comments explain the method and give its source.
 */
export class SplitHalfProduct implements Float32Product {
  readonly #context: CudaContext;
  readonly #tensorMaps: TensorMapEncoder;
  readonly #scratch: Scratch;
  readonly #plans = new Map<string, ShapePlan | null>();
  readonly #specs = new Map<string, KernelSpec>();
  /** SplitParams; see kernels/matmul/split_half.cu. */
  readonly #splitParameters = new HostMemory(2 * splitOperand.byteLength);
  /** MatmulParams; see kernels/matmul/matmul_split_half.cu. */
  readonly #parameters = new HostMemory(matmulParams.byteLength);

  constructor(context: CudaContext, driver: CudaDriver, scratch: Scratch) {
    this.#context = context;
    this.#tensorMaps = new TensorMapEncoder(driver);
    this.#scratch = scratch;
  }

  tryRun(request: MatmulRequest, force: boolean): boolean {
    const plan = this.#planOf(request, force);
    if (!plan) return false;
    const [a, b] = storedOperands(request);
    const context = this.#context;
    const splitA = this.#workspaceOf(plan.a);
    const splitB = this.#workspaceOf(plan.b);
    this.#writeSplit(0, a, plan.a, splitA);
    this.#writeSplit(splitOperand.byteLength, b, plan.b, splitB);
    const blocks = plan.a.blocks + plan.b.blocks;
    context
      .kernel(splitKernel)
      .launch([blocks, 1, 1], splitHalfThreads, 0, [
        this.#splitParameters.bytes.subarray(0, 2 * splitOperand.byteLength),
      ]);
    this.#encodeMap(matmulParams.tensorMaps.a, plan.a, splitA.planes);
    this.#encodeMap(matmulParams.tensorMaps.b, plan.b, splitB.planes);
    this.#multiply(request, plan, splitA, splitB);
    return true;
  }

  #workspaceOf(layout: SplitHalfOperandLayout): SplitOperand {
    const context = this.#context;
    return {
      planes: context.workspace(layout.planesBytes),
      summaries: context.workspace(layout.summariesBytes),
      factors: context.workspace(layout.factorsBytes),
    };
  }

  #planOf(request: MatmulRequest, force: boolean): ShapePlan | null {
    const { m, n, k, batch, transposeA, transposeB, batchStrideA, batchStrideB } = request;
    const key = `${force},${m},${n},${k},${batch},${transposeA},${transposeB},${batchStrideA === 0},${batchStrideB === 0}`;
    let plan = this.#plans.get(key);
    if (plan === undefined) this.#plans.set(key, (plan = this.#makePlan(request, force)));
    return plan;
  }

  /** Null if cublasLt is expected to be faster, unless forced, and if both operands are stored transposed. */
  #makePlan(request: MatmulRequest, force: boolean): ShapePlan | null {
    const { m, n, k, batch, transposeA, transposeB } = request;
    if (transposeA && transposeB) return null;
    const matmul = planSplitHalfMatmul({ m, n, k, batch, smCount: this.#context.properties.multiprocessors });
    const [a, b] = storedOperands(request);
    const elements = a.batch * a.rows * a.columns + b.batch * b.rows * b.columns;
    const sgemmUs = sgemmLaunchUs + (2 * m * n * k * batch) / sgemmFlopsPerUs;
    if (!force && matmul.modelledUs + modelSplitHalfUs(elements) >= sgemmUs) return null;
    const defines = splitHalfDefines(matmul.tile, transposeA, transposeB);
    return {
      matmul,
      kernel: this.#specOf(matmul, defines),
      a: layoutSplitHalfOperand(a),
      b: layoutSplitHalfOperand(b),
    };
  }

  #specOf({ sharedMemoryBytes }: SplitHalfMatmulPlan, defines: Record<string, number>): KernelSpec {
    const key = JSON.stringify(defines);
    let spec = this.#specs.get(key);
    if (!spec) {
      const source = kernelSource('matmul/matmul_split_half.cu');
      spec = {
        source,
        name: 'matmul_split_half',
        parameters: 'T',
        defines,
        dynamicSharedBytes: sharedMemoryBytes,
        overlapsPrevious: true,
      };
      this.#specs.set(key, spec);
    }
    return spec;
  }

  #writeSplit(
    offset: number,
    operand: StoredOperand,
    { pitch, blocks }: SplitHalfOperandLayout,
    { planes, summaries, factors }: SplitOperand,
  ): void {
    const memory = this.#splitParameters;
    const { int64, words } = splitOperand;
    memory.writeInt64(offset + int64.source, operand.pointer);
    memory.writeInt64(offset + int64.planes, planes);
    memory.writeInt64(offset + int64.summaries, summaries);
    memory.writeInt64(offset + int64.factors, factors);
    memory.writeInt64(offset + int64.sourceBatchStride, operand.batchStride);
    const word = offset / 4;
    memory.words[word + words.rows] = operand.rows;
    memory.words[word + words.columns] = operand.columns;
    memory.words[word + words.sourcePitch] = operand.pitch;
    memory.words[word + words.pitch] = pitch;
    memory.words[word + words.blocks] = blocks;
    memory.words[word + words.linesAreColumns] = Number(operand.linesAreColumns);
  }

  /** Writes the CUtensorMap of an operand's planes at `offset` of the parameters. */
  #encodeMap(offset: number, { tensorMap }: SplitHalfOperandLayout, planes: number): void {
    const { dimensions, strideBytes, box } = tensorMap;
    this.#tensorMaps.encode(
      {
        dtype: 'float16',
        address: planes,
        dimensions,
        strideBytes,
        box,
        swizzle: '128B',
        l2Promotion: '256B',
      },
      this.#parameters,
      offset,
    );
  }

  #multiply(
    request: MatmulRequest,
    { matmul, kernel, a, b }: ShapePlan,
    splitA: SplitOperand,
    splitB: SplitOperand,
  ): void {
    const { gridSize, blockSize, sharedMemoryBytes, streamTiles, groupM, partialsBytes, readyBytes } = matmul;
    const memory = this.#parameters;
    const step = (layout: SplitHalfOperandLayout) => Number(layout.tensorMap.dimensions[3] > 1);
    const { int64, words, floats } = matmulParams;
    memory.writeInt64(int64.factorsA, splitA.factors);
    memory.writeInt64(int64.factorsB, splitB.factors);
    memory.writeInt64(int64.c, request.d);
    // The kernel leaves its flags as it found them, zero.
    memory.writeInt64(int64.partials, this.#scratch('split-half partials', partialsBytes));
    memory.writeInt64(int64.ready, this.#scratch('split-half flags', readyBytes));
    memory.writeInt64(int64.batchStrideC, request.batchStrideD);
    memory.words[words.m] = request.m;
    memory.words[words.n] = request.n;
    memory.words[words.k] = request.k;
    memory.words[words.batch] = request.batch;
    memory.words[words.pitchC] = request.pitchD;
    memory.words[words.batchStepA] = step(a);
    memory.words[words.batchStepB] = step(b);
    memory.floats[floats.alpha] = request.scale;
    memory.words[words.streamTiles] = streamTiles;
    memory.words[words.groupM] = groupM;
    memory.writeInt64(int64.sourceA, request.a);
    memory.writeInt64(int64.sourceB, request.b);
    memory.writeInt64(int64.batchStrideA, request.batchStrideA);
    memory.writeInt64(int64.batchStrideB, request.batchStrideB);
    memory.words[words.pitchA] = request.pitchA;
    memory.words[words.pitchB] = request.pitchB;
    memory.writeInt64(int64.summariesA, splitA.summaries);
    memory.writeInt64(int64.summariesB, splitB.summaries);
    const structure = memory.bytes.subarray(0, matmulParams.byteLength);
    this.#context.kernel(kernel).launch([gridSize, 1, 1], blockSize, sharedMemoryBytes, [structure]);
  }
}

/** A and B as they are stored. A batch stride of zero is one matrix for all products. */
function storedOperands(request: MatmulRequest): [StoredOperand, StoredOperand] {
  const { m, n, k, batch, transposeA, transposeB } = request;
  const stored = (
    pointer: number,
    transposed: boolean,
    rows: number,
    columns: number,
    pitch: number,
    stride: number,
    linesAreColumns: boolean,
  ) => ({
    pointer,
    rows: transposed ? columns : rows,
    columns: transposed ? rows : columns,
    pitch,
    batch: stride === 0 ? 1 : batch,
    batchStride: stride,
    linesAreColumns,
  });
  return [
    stored(request.a, transposeA, m, k, request.pitchA, request.batchStrideA, transposeA),
    stored(request.b, transposeB, k, n, request.pitchB, request.batchStrideB, !transposeB),
  ];
}
