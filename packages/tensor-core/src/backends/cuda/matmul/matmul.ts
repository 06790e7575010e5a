import type { MatmulRequest } from '../../../op/cuda-lowering.ts';
import { DeviceError } from '@roofline/cuda/host';
import { getFloat32MatmulPrecision } from '../../../op/float32-matmul-precision.ts';
import { byteSize } from '../../../base/dtype.ts';
import type { CublasLt, CurrentStream, LtMatmul, LtMatmulDescription } from '@roofline/cuda/parts';
import { getFloat32MatmulKernel } from '../../../op/float32-matmul-kernel.ts';
import { MatmulPlans, type ProductTerms } from './matmul-plans.ts';
import type { Workspace } from '../generated/reduction.ts';

/** Another way to multiply float32 matrices at full precision. */
export interface Float32Product {
  /**
   * Queues the product and returns true; returns false if it cannot, or, unless `force` is set, if cublasLt is expected to be
   * faster.
   */
  tryRun(request: MatmulRequest, force: boolean): boolean;
}

/** Chooses the fastest of several cublasLt algorithms for a product. */
export type ChooseAlgorithm = (library: CublasLt, description: LtMatmulDescription) => LtMatmul;

/** A product that cublasLt multiplies. */
interface Product {
  readonly request: MatmulRequest;
  readonly terms: ProductTerms;
}

/** Matrix products of one device. */
export class Matmul {
  readonly #streams: CurrentStream;
  readonly #workspace: Workspace;
  readonly #fillZeros: (address: number, byteLength: number) => void;
  readonly #float32: Float32Product | null;
  readonly #loadLibrary: () => CublasLt;
  /** How many products now find free; undefined for all. */
  readonly #multiprocessors: () => number | undefined;
  #library: CublasLt | null = null;
  readonly #plans = new MatmulPlans((description) => this.#loaded().prepare(description));
  /** With the fastest algorithms, each timed once in the device's life. */
  readonly #tunedPlans: MatmulPlans;
  #isTuned = false;
  /** The products seen while tuning; null at other times. */
  #noted: Product[] | null = null;

  constructor(
    streams: CurrentStream,
    workspace: Workspace,
    fillZeros: (address: number, byteLength: number) => void,
    float32: Float32Product | null,
    loadLibrary: () => CublasLt,
    chooseFastest: ChooseAlgorithm,
    multiprocessors: () => number | undefined,
  ) {
    this.#multiprocessors = multiprocessors;
    this.#tunedPlans = new MatmulPlans((description) => chooseFastest(this.#loaded(), description));
    this.#streams = streams;
    this.#workspace = workspace;
    this.#fillZeros = fillZeros;
    this.#float32 = float32;
    this.#loadLibrary = loadLibrary;
  }

  /** Queues a product. Throws a LibraryNotFoundError without cublasLt, a DTypeError for dtypes that it does not multiply. */
  readonly run = (request: MatmulRequest): void => {
    const { m, n, k, batch, inputDType, c } = request;
    if (m === 0 || n === 0 || batch === 0) return;
    if (k === 0) {
      this.#zero(request);
      return;
    }
    const allowTf32 = inputDType === 'float32' && getFloat32MatmulPrecision() === 'high';
    if (inputDType === 'float32' && !allowTf32 && c === undefined && this.#runOnTensorCores(request)) return;
    const multiprocessors = this.#multiprocessors();
    const terms = multiprocessors === undefined ? { allowTf32 } : { allowTf32, multiprocessors };
    this.#noted?.push({ request, terms });
    const matmul = (this.#isTuned ? this.#tunedPlans : this.#plans).find(request, terms);
    const workspace = matmul.workspaceBytes > 0 ? this.#workspace(matmul.workspaceBytes) : 0;
    const factors = {
      alpha: request.scale,
      beta: c === undefined ? 0 : 1,
      isDouble: inputDType === 'float64',
    };
    // cublasLt is column-major, so the operands change places; see describeMatmul.
    this.#loaded().run(
      matmul,
      { a: request.b, b: request.a, c: c ?? request.d, d: request.d },
      factors,
      workspace,
      this.#streams.current.handle,
    );
  };

  /**
   * Times algorithms for the products that `queue` queues, unless they were timed before. `queue` must leave the stream as it
   * was, as a capture does that is never launched.
   */
  tune(queue: () => void): void {
    const products: Product[] = [];
    this.#noted = products;
    try {
      queue();
    } finally {
      this.#noted = null;
    }
    for (const { request, terms } of products) this.#tunedPlans.find(request, terms);
  }

  /** Runs `fn`, whose products have been tuned, with the fastest algorithms. */
  withTuned<T>(fn: () => T): T {
    this.#isTuned = true;
    try {
      return fn();
    } finally {
      this.#isTuned = false;
    }
  }

  #runOnTensorCores(request: MatmulRequest): boolean {
    const kernel = getFloat32MatmulKernel();
    if (kernel === 'simt') return false;
    const force = kernel === 'split-half';
    if (this.#float32?.tryRun(request, force)) return true;
    if (!force) return false;
    const { m, n, k, batch } = request;
    throw new DeviceError(
      `matmul: split-half cannot multiply ${batch} × [${m}, ${k}] · [${k}, ${n}] here; choose 'auto'.`,
    );
  }

  /** Writes an empty sum: D is zero. */
  #zero({ m, n, batch, c, d, pitchD, batchStrideD, outputDType }: MatmulRequest): void {
    if (c !== undefined) {
      throw new DeviceError(
        `matmul: ${batch} × [${m}, 0] · [0, ${n}] adds nothing to C; copy it where it is wanted.`,
      );
    }
    const bytes = byteSize(outputDType);
    for (let i = 0; i < batch; i++) {
      for (let row = 0; row < m; row++)
        this.#fillZeros(d + (i * batchStrideD + row * pitchD) * bytes, n * bytes);
    }
  }

  #loaded(): CublasLt {
    this.#library ??= this.#loadLibrary();
    return this.#library;
  }
}
