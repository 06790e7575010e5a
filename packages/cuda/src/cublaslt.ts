import { DeviceError } from './base/errors.ts';
import { type NativeFunctions, declareFunctions } from './base/host/ffi.ts';
import { HostMemory } from './base/host/host-memory.ts';
import { libraries, loadLibrary } from './driver/library-search.ts';

const prototypes = {
  cublasLtGetVersion: 'size_t cublasLtGetVersion()',
  cublasLtCreate: 'int cublasLtCreate(uintptr_t handle)',
  cublasLtMatmulDescCreate: 'int cublasLtMatmulDescCreate(uintptr_t desc, int computeType, int scaleType)',
  cublasLtMatmulDescDestroy: 'int cublasLtMatmulDescDestroy(uintptr_t desc)',
  cublasLtMatmulDescSetAttribute:
    'int cublasLtMatmulDescSetAttribute(uintptr_t desc, int attribute, uintptr_t value, size_t bytes)',
  cublasLtMatrixLayoutCreate:
    'int cublasLtMatrixLayoutCreate(uintptr_t layout, int type, uint64 rows, uint64 columns, int64 pitch)',
  cublasLtMatrixLayoutDestroy: 'int cublasLtMatrixLayoutDestroy(uintptr_t layout)',
  cublasLtMatrixLayoutSetAttribute:
    'int cublasLtMatrixLayoutSetAttribute(uintptr_t layout, int attribute, uintptr_t value, size_t bytes)',
  cublasLtMatmulPreferenceCreate: 'int cublasLtMatmulPreferenceCreate(uintptr_t preference)',
  cublasLtMatmulPreferenceDestroy: 'int cublasLtMatmulPreferenceDestroy(uintptr_t preference)',
  cublasLtMatmulPreferenceSetAttribute:
    'int cublasLtMatmulPreferenceSetAttribute(uintptr_t preference, int attribute, uintptr_t value, size_t bytes)',
  cublasLtMatmulAlgoGetHeuristic:
    'int cublasLtMatmulAlgoGetHeuristic(uintptr_t handle, uintptr_t desc, uintptr_t a, uintptr_t b, uintptr_t c, ' +
    'uintptr_t d, uintptr_t preference, int wanted, uintptr_t results, uintptr_t found)',
  cublasLtMatmul:
    'int cublasLtMatmul(uintptr_t handle, uintptr_t desc, uintptr_t alpha, uintptr_t a, uintptr_t layoutA, ' +
    'uintptr_t b, uintptr_t layoutB, uintptr_t beta, uintptr_t c, uintptr_t layoutC, uintptr_t d, ' +
    'uintptr_t layoutD, uintptr_t algorithm, uintptr_t workspace, size_t workspaceBytes, uintptr_t stream)',
} as const;

/** cudaDataType. */
export const dataTypes = { float32: 0, float64: 1, float16: 2, bfloat16: 14 } as const;

/** cublasComputeType_t. */
export const computeTypes = { float32: 68, float64: 70, tf32: 77 } as const;

// Attributes, from cublasLt.h.
const descTransposeA = 3;
const descTransposeB = 4;
const descMultiprocessors = 15;
const layoutBatchCount = 5;
const layoutBatchStride = 6;
const preferenceWorkspaceBytes = 1;
const preferenceAlignment = [5, 6, 7, 8] as const;

const operationTranspose = 1;
const algorithmBytes = 64;
const heuristicResultBytes = 96;
const stateOffset = 72;
const betaOffset = 8;

const statusNames: Readonly<Record<number, string>> = {
  1: 'CUBLAS_STATUS_NOT_INITIALIZED',
  3: 'CUBLAS_STATUS_ALLOC_FAILED',
  7: 'CUBLAS_STATUS_INVALID_VALUE',
  8: 'CUBLAS_STATUS_ARCH_MISMATCH',
  11: 'CUBLAS_STATUS_MAPPING_ERROR',
  13: 'CUBLAS_STATUS_EXECUTION_FAILED',
  14: 'CUBLAS_STATUS_INTERNAL_ERROR',
  15: 'CUBLAS_STATUS_NOT_SUPPORTED',
};

/** A column-major matrix as cublasLt sees it. */
export interface ColumnMajorLayout {
  readonly dataType: number;
  readonly rows: number;
  readonly columns: number;
  /** Elements from one column to the next. */
  readonly pitch: number;
  readonly batch: number;
  readonly batchStride: number;
}

/** cublasLt's descriptors of one product, and the algorithm chosen for it. */
export interface LtMatmul {
  readonly desc: number;
  readonly a: number;
  readonly b: number;
  readonly d: number;
  /** 64 bytes at a fixed address. */
  readonly algorithm: HostMemory;
  readonly workspaceBytes: number;
}

/** A product as cublasLt is asked for it, column by column: D = alpha · op(A) · op(B) + beta · C. */
export interface LtMatmulDescription {
  readonly computeType: number;
  readonly scaleType: number;
  readonly transposeA: boolean;
  readonly transposeB: boolean;
  readonly a: ColumnMajorLayout;
  readonly b: ColumnMajorLayout;
  readonly d: ColumnMajorLayout;
  /** The alignment of the operands' addresses, in bytes: algorithms may rely on it. */
  readonly alignments: { readonly a: number; readonly b: number; readonly c: number; readonly d: number };
  readonly workspaceBytes: number;
  /** How many multiprocessors it will find free; all if not said. Algorithms are chosen that fill those. */
  readonly multiprocessors?: number;
}

/** What of cublasLt is called. */
export type CublasLtFunctions = NativeFunctions<typeof prototypes>;

/** One device's cublasLt handle. */
export class CublasLt {
  readonly version: number;
  readonly #functions: CublasLtFunctions;
  readonly #handle: number;
  readonly #scratch = new HostMemory(256);
  /** alpha at 0 and beta at 8; read during the call. */
  readonly #factors = new HostMemory(64);

  constructor(functions = loadFunctions()) {
    this.#functions = functions;
    this.version = functions.cublasLtGetVersion();
    this.#handle = this.#create('cublasLtCreate', (out) => functions.cublasLtCreate(out));
  }

  /** Makes the descriptors and asks the heuristic once. Throws a DeviceError if nothing fits. */
  prepare(description: LtMatmulDescription): LtMatmul {
    return this.candidates(description, 1)[0]!;
  }

  /**
   * The same product by up to `most` algorithms, at least one, which the heuristic takes to be the faster the earlier they
   * come. Throws a DeviceError if nothing fits.
   */
  candidates(description: LtMatmulDescription, most: number): LtMatmul[] {
    const { computeType, scaleType, transposeA, transposeB } = description;
    const functions = this.#functions;
    const desc = this.#create('cublasLtMatmulDescCreate', (out) =>
      functions.cublasLtMatmulDescCreate(out, computeType, scaleType),
    );
    if (transposeA)
      this.#setInt(functions.cublasLtMatmulDescSetAttribute, desc, descTransposeA, operationTranspose);
    if (transposeB)
      this.#setInt(functions.cublasLtMatmulDescSetAttribute, desc, descTransposeB, operationTranspose);
    if (description.multiprocessors !== undefined)
      this.#setInt(
        functions.cublasLtMatmulDescSetAttribute,
        desc,
        descMultiprocessors,
        description.multiprocessors,
      );
    const [a, b, d] = [this.#layout(description.a), this.#layout(description.b), this.#layout(description.d)];
    return this.#algorithms(desc, a, b, d, description, most).map((algorithm) => {
      return { desc, a, b, d, algorithm, workspaceBytes: algorithm.readUint64(algorithmBytes) };
    });
  }

  /** Queues D = alpha · A · B + beta · C, where C lies as D does. `isDouble` says of what type alpha and beta are. */
  run(
    matmul: LtMatmul,
    addresses: { readonly a: number; readonly b: number; readonly c: number; readonly d: number },
    factors: { readonly alpha: number; readonly beta: number; readonly isDouble: boolean },
    workspace: number,
    stream: number,
  ): void {
    const memory = this.#factors;
    const places = factors.isDouble ? memory.doubles : memory.floats;
    places[0] = factors.alpha;
    places[betaOffset / places.BYTES_PER_ELEMENT] = factors.beta;
    const status = this.#functions.cublasLtMatmul(
      this.#handle,
      matmul.desc,
      memory.address,
      addresses.a,
      matmul.a,
      addresses.b,
      matmul.b,
      memory.address + betaOffset,
      addresses.c,
      matmul.d,
      addresses.d,
      matmul.d,
      matmul.algorithm.address,
      workspace,
      matmul.workspaceBytes,
      stream,
    );
    if (status !== 0) check(status, 'cublasLtMatmul');
  }

  /** The heuristic's results, an algorithm and its workspace in each. */
  #algorithms(
    desc: number,
    a: number,
    b: number,
    d: number,
    description: LtMatmulDescription,
    most: number,
  ): HostMemory[] {
    const functions = this.#functions;
    const preference = this.#create('cublasLtMatmulPreferenceCreate', (out) =>
      functions.cublasLtMatmulPreferenceCreate(out),
    );
    const set = functions.cublasLtMatmulPreferenceSetAttribute;
    this.#scratch.writeInt64(0, description.workspaceBytes);
    check(
      set(preference, preferenceWorkspaceBytes, this.#scratch.address, 8),
      'cublasLtMatmulPreferenceSetAttribute',
    );
    const { alignments } = description;
    [alignments.a, alignments.b, alignments.c, alignments.d].forEach((bytes, i) =>
      this.#setInt(set, preference, preferenceAlignment[i]!, bytes),
    );
    const results = new HostMemory(heuristicResultBytes * most);
    const found = this.#scratch.address;
    const status = functions.cublasLtMatmulAlgoGetHeuristic(
      this.#handle, desc, a, b, d, d, preference, most, results.address, found,
    ); // prettier-ignore
    functions.cublasLtMatmulPreferenceDestroy(preference);
    const algorithms: HostMemory[] = [];
    const count = status === 0 ? this.#scratch.readInt32(0) : 0;
    for (let i = 0; i < count; i++) {
      const result = results.bytes.subarray(heuristicResultBytes * i, heuristicResultBytes * (i + 1));
      const algorithm = new HostMemory(heuristicResultBytes);
      algorithm.bytes.set(result);
      if (algorithm.readInt32(stateOffset) === 0) algorithms.push(algorithm);
    }
    if (algorithms.length === 0) {
      throw new DeviceError(`cublasLt has no algorithm for this product: ${JSON.stringify(description)}.`);
    }
    return algorithms;
  }

  #layout({ dataType, rows, columns, pitch, batch, batchStride }: ColumnMajorLayout): number {
    const functions = this.#functions;
    const layout = this.#create('cublasLtMatrixLayoutCreate', (out) =>
      functions.cublasLtMatrixLayoutCreate(out, dataType, rows, columns, pitch),
    );
    const set = functions.cublasLtMatrixLayoutSetAttribute;
    if (batch > 1) {
      this.#setInt(set, layout, layoutBatchCount, batch);
      this.#scratch.writeInt64(0, batchStride);
      check(set(layout, layoutBatchStride, this.#scratch.address, 8), 'cublasLtMatrixLayoutSetAttribute');
    }
    return layout;
  }

  #setInt(
    set: CublasLtFunctions['cublasLtMatmulDescSetAttribute'],
    object: number,
    attribute: number,
    value: number,
  ): void {
    this.#scratch.words[0] = value;
    check(set(object, attribute, this.#scratch.address, 4), `setting cublasLt's attribute ${attribute}`);
  }

  #create(call: string, invoke: (out: number) => number): number {
    check(invoke(this.#scratch.address), call);
    return this.#scratch.readUint64(0);
  }
}

function check(status: number, call: string): void {
  if (status === 0) return;
  throw new DeviceError(`${call} failed: ${statusNames[status] ?? `status ${status}`}.`);
}

function loadFunctions(): CublasLtFunctions {
  const { handle, path } = loadLibrary(libraries.cublasLt);
  const missing = (name: string) => new DeviceError(`${path} has no ${name}: take a newer cublasLt.`);
  return declareFunctions(handle, prototypes, missing);
}
