import koffi from 'koffi';
import { CublasLt, type CublasLtFunctions, computeTypes, dataTypes } from '../cublaslt.ts';
import { fromBfloat16, fromFloat16, toBfloat16, toFloat16 } from '../base/float16.ts';
import type { EmulatedGpu } from './emulated-gpu.ts';

/** An attribute's 32 or 64 bits by its number, as cublasLt's objects hold them. */
type Attributes = Map<number, number>;

/** The types of elements that cublasLt is asked for. */
type DataType = keyof typeof dataTypes;

const bytesOf: Readonly<Record<DataType, number>> = { float32: 4, float64: 8, float16: 2, bfloat16: 2 };
const toBits = { float16: toFloat16, bfloat16: toBfloat16 } as const;
const fromBits = { float16: fromFloat16, bfloat16: fromBfloat16 } as const;

interface Layout {
  readonly dtype: DataType;
  readonly rows: number;
  readonly columns: number;
  readonly pitch: number;
  readonly attributes: Attributes;
}

interface Description {
  readonly isDouble: boolean;
  readonly attributes: Attributes;
}

// CUBLAS_STATUS_NOT_SUPPORTED
const notSupported = 15;
// Attributes and places, from cublasLt.h.
const [transposeA, transposeB] = [3, 4];
const [batchCount, batchStride] = [5, 6];
const algorithmBytes = 64;
const heuristicResultBytes = 96;

const dtypesByNumber = new Map<number, DataType>(
  Object.entries(dataTypes).map(([name, type]) => [type, name as DataType]),
);

/**
 * cublasLt's calls as far as this package makes them, in JavaScript over memory that emulated device addresses name: column
 * by column, D = alpha · op(A) · op(B) + beta · C, summed in float64 and rounded once.
 */
export class EmulatedCublasLt {
  readonly #queue: (stream: number, run: () => void) => void;
  readonly #layouts = new Map<number, Layout>();
  readonly #descriptions = new Map<number, Description>();
  #objects = 0;

  /** `queue` puts work on a stream. */
  constructor(queue: (stream: number, run: () => void) => void) {
    this.#queue = queue;
  }

  readonly functions = {
    cublasLtGetVersion: () => 0,
    cublasLtCreate: (out: number) => this.#create(out, () => undefined),
    cublasLtMatmulDescCreate: (out: number, computeType: number) =>
      this.#create(out, (handle) => {
        const isDouble = computeType === computeTypes.float64;
        this.#descriptions.set(handle, { isDouble, attributes: new Map() });
      }),
    cublasLtMatmulDescDestroy: () => 0,
    cublasLtMatmulDescSetAttribute: (desc: number, attribute: number, value: number, bytes: number) =>
      setAttribute(this.#descriptions.get(desc)!, attribute, value, bytes),
    cublasLtMatrixLayoutCreate: (out: number, type: number, rows: number, columns: number, pitch: number) =>
      this.#create(out, (handle) => {
        const dtype = dtypesByNumber.get(type)!;
        this.#layouts.set(handle, { dtype, rows, columns, pitch, attributes: new Map() });
      }),
    cublasLtMatrixLayoutDestroy: () => 0,
    cublasLtMatrixLayoutSetAttribute: (layout: number, attribute: number, value: number, bytes: number) =>
      setAttribute(this.#layouts.get(layout)!, attribute, value, bytes),
    cublasLtMatmulPreferenceCreate: (out: number) => this.#create(out, () => undefined),
    cublasLtMatmulPreferenceDestroy: () => 0,
    cublasLtMatmulPreferenceSetAttribute: () => 0,
    cublasLtMatmulAlgoGetHeuristic: (...values: number[]) => this.#choose(values),
    cublasLtMatmul: (...values: number[]) => this.#multiply(values),
  } as CublasLtFunctions;

  #create(out: number, keep: (handle: number) => void): number {
    const handle = ++this.#objects;
    keep(handle);
    new BigUint64Array(koffi.view(out, 8))[0] = BigInt(handle);
    return 0;
  }

  /** Any algorithm will do, for combinations of dtypes that cublasLt takes. */
  #choose([, , a, b, c, d, , , results, found]: number[]): number {
    const [A, B, C, D] = [a, b, c, d].map((layout) => this.#layouts.get(layout!)!.dtype);
    const takes = A === B && C === D && (A === D || (D === 'float32' && bytesOf[A!] === 2));
    new Uint8Array(koffi.view(results!, heuristicResultBytes)).fill(0, 0, algorithmBytes + 8);
    new Int32Array(koffi.view(found!, 4))[0] = takes ? 1 : 0;
    return takes ? 0 : notSupported;
  }

  #multiply(values: readonly number[]): number {
    const [, desc, alphaAt, a, layoutA, b, layoutB, betaAt, c, layoutC, d, layoutD] = values;
    const stream = values[15]!;
    const { isDouble, attributes } = this.#descriptions.get(desc!)!;
    const factor = (address: number) =>
      isDouble ? new Float64Array(koffi.view(address, 8))[0]! : new Float32Array(koffi.view(address, 4))[0]!;
    const [alpha, beta] = [factor(alphaAt!), factor(betaAt!)];
    const [A, B, C, D] = [layoutA, layoutB, layoutC, layoutD].map((layout) => this.#layouts.get(layout!)!);
    const [turnsA, turnsB] = [transposeA, transposeB].map((attribute) => attributes.get(attribute) === 1);
    this.#queue(stream, () => {
      for (let i = 0; i < (D!.attributes.get(batchCount) ?? 1); i++) {
        const left = elementsOf(A!, a!, i, turnsA!);
        const right = elementsOf(B!, b!, i, turnsB!);
        const added = beta === 0 ? null : elementsOf(C!, c!, i, false);
        write(D!, d!, i, (row, column) => {
          let sum = 0;
          for (let l = 0; l < left.columns; l++) sum += left.at(row, l) * right.at(l, column);
          return alpha * sum + (added ? beta * added.at(row, column) : 0);
        });
      }
    });
    return 0;
  }
}

function setAttribute(
  { attributes }: { attributes: Attributes },
  attribute: number,
  value: number,
  bytes: number,
): number {
  const memory = koffi.view(value, bytes);
  attributes.set(attribute, bytes === 8 ? Number(new BigInt64Array(memory)[0]) : new Int32Array(memory)[0]!);
  return 0;
}

function isHalf(dtype: DataType): dtype is keyof typeof toBits {
  return dtype in toBits;
}

/** The elements' bits of product `index` of a batch, column by column. */
function bitsOf({ dtype, rows, columns, pitch, attributes }: Layout, address: number, index: number) {
  const bytes = bytesOf[dtype];
  const start = address + index * (attributes.get(batchStride) ?? 0) * bytes;
  const memory = koffi.view(start, ((columns - 1) * pitch + rows) * bytes);
  if (dtype === 'float64') return new Float64Array(memory);
  return dtype === 'float32' ? new Float32Array(memory) : new Uint16Array(memory);
}

/** A matrix of a batch, to read; `turned` gives its transpose. */
function elementsOf(layout: Layout, address: number, index: number, turned: boolean) {
  const bits = bitsOf(layout, address, index);
  const { dtype, pitch } = layout;
  const values = isHalf(dtype) ? Float64Array.from(bits, fromBits[dtype]) : bits;
  return {
    columns: turned ? layout.rows : layout.columns,
    at: (row: number, column: number) => values[turned ? row * pitch + column : column * pitch + row]!,
  };
}

/** Writes each element of a matrix of a batch. */
function write(
  layout: Layout,
  address: number,
  index: number,
  valueAt: (row: number, column: number) => number,
): void {
  const { dtype, rows, columns, pitch } = layout;
  const bits = bitsOf(layout, address, index);
  const round = isHalf(dtype) ? toBits[dtype] : (x: number) => x;
  for (let column = 0; column < columns; column++)
    for (let row = 0; row < rows; row++) bits[column * pitch + row] = round(valueAt(row, column));
}

/** cublasLt for an emulated GPU. */
export function emulatedCublasLt({ queue }: Pick<EmulatedGpu, 'queue'>): CublasLt {
  return new CublasLt(new EmulatedCublasLt(queue).functions);
}
