import type { KernelFusion } from '../../../op/kernel-rewrites.ts';
import type { KernelSpec } from '@roofline/cuda';
import type { DType } from '../../../base/dtype.ts';
import { storageType } from '../../../op/kernel-arguments/c-types.ts';
import {
  type PointwiseSignature,
  evaluate,
  evaluateSource,
  scalarDType,
  scalarNames,
} from './pointwise-kernel.ts';

/**
 * How a kernel on [rows, columns] reads an operand: element by element, one element for each column, a single element, or
 * rows of a table by their numbers, which lie in memory.
 */
export type OperandWalk = 'dense' | 'columns' | 'one' | 'rows';

/** A table whose rows a prologue looks up. */
export interface RowLookup {
  /** The dtype of the row numbers. */
  readonly ids: DType;
  readonly rows: number;
  readonly columns: number;
}

/** A prologue or epilogue: element-wise work on operands in memory, and, in an epilogue, on the kernel's own result. */
export interface FusedSignature {
  readonly pointwise: PointwiseSignature;
  /** The inputs that the expressions read, and how; null for the kernel's result. */
  readonly read: readonly { readonly input: number; readonly walk: OperandWalk | null }[];
  /** By output, whether it is written to memory. */
  readonly stores: readonly boolean[];
  /** In an epilogue: whether the kernel's result is also written to memory. */
  readonly storesResult: boolean;
  /** In a prologue: which output the kernel reads. */
  readonly result: number;
  /** In a prologue: the table of the operand that is read by rows. */
  readonly lookup?: RowLookup;
}

/** What is fused into a kernel; null for nothing. */
export interface FusionSignatures {
  readonly prologue: FusedSignature | null;
  readonly epilogue: FusedSignature | null;
}

const pointerBytes = 8;

/** The text of the header fusion.cuh; see there. */
export function fusionSource({ prologue, epilogue }: FusionSignatures): string {
  return `#include "no_fusion.cuh"

namespace prologue {
${prologue ? prologueSource(prologue) : 'using Fused = NoPrologue;'}
}
namespace epilogue {
${epilogue ? epilogueSource(epilogue) : 'using Fused = NoEpilogue;'}
}
constexpr bool kHasPrologue = ${prologue !== null};
using Prologue = prologue::Fused;
using Epilogue = epilogue::Fused;
struct Fusion {
  Prologue prologue;
  Epilogue epilogue;
};
`;
}

function prologueSource(fused: FusedSignature): string {
  return `${evaluateSource(fused.pointwise, placesRead(fused))}
${fused.lookup ? lookupSource(fused.lookup) : ''}
struct Fused {
${members(fused)}

  template <int N, typename Stored>
  __device__ __forceinline__ Vector<Stored, N> load(const Stored*, int64 at, int column) const {
    Vector<Stored, N> x;
    ${loadedSource(fused)}
${calculation(fused, `x[j] = kept_apart(result${fused.result}[j]);`)}
    return x;
  }
};`;
}

/** Looks rows up as the op embedding does: NaN for a number out of range. */
function lookupSource({ ids, rows, columns }: RowLookup): string {
  return `template <int N, typename Stored>
__device__ __forceinline__ Vector<Stored, N> looked_up(const Stored* table, const ${storageType(ids)}* ids, int64 at, int column) {
  const int64 id = ids[at / ${columns}];
  if (id >= 0 && id < ${rows}) return load_vector<N>(table + id * ${columns} + column);
  Vector<Stored, N> none;
#pragma unroll
  for (int j = 0; j < N; j++) none[j] = convert<Stored>(lowest<Compute>() - lowest<Compute>());
  return none;
}
`;
}

function epilogueSource(fused: FusedSignature): string {
  return `${evaluateSource(fused.pointwise, placesRead(fused))}
struct Fused {
${members(fused)}

  template <int N>
  struct Loaded {
${lines(fused.read, ({ input, walk }) => walk && `    ${elementsType(fused, input, walk)} vector${input};`)}
  };

  template <int N>
  __device__ __forceinline__ Loaded<N> load(int64 at, int column) const {
    return {${inMemory(fused)
      .map((operand) => load(operand))
      .join(', ')}};
  }

  template <int N, typename Stored>
  __device__ __forceinline__ void store(Stored* address, int64 at, Loaded<N> loaded, const compute_t<Stored> (&x)[N]) const {
    Vector<Stored, N> made;
#pragma unroll
    for (int j = 0; j < N; j++) made[j] = kept_apart(convert<Stored>(x[j]));
${fused.storesResult ? '    store_vector(address + at, made);' : ''}
${calculation(fused, '')}
  }
};`;
}

/** The local structure `loaded` of what has been read from memory. */
function loadedSource(fused: FusedSignature): string {
  const fields = lines(
    fused.read,
    ({ input, walk }) => walk && `      ${elementsType(fused, input, walk)} vector${input};`,
  );
  const values = inMemory(fused).map((operand) => load(operand));
  return `struct {
${fields}
    } loaded = {${values.join(', ')}};`;
}

function placesRead({ read }: FusedSignature): number[] {
  return read.map(({ input }) => input);
}

function members({ pointwise, read, stores, lookup }: FusedSignature): string {
  const { inputs, outputs } = pointwise;
  return [
    ...inMemory({ read }).map(({ input }) => `  const ${storageType(inputs[input]!)}* in${input};`),
    ...(lookup ? [`  const ${storageType(lookup.ids)}* ids;`] : []),
    ...outputs.flatMap((dtype, i) => (stores[i] ? [`  ${storageType(dtype)}* out${i};`] : [])),
    ...scalarNames(pointwise).map((name) => `  Compute ${name};`),
  ].join('\n');
}

function elementsType({ pointwise }: FusedSignature, input: number, walk: OperandWalk): string {
  const type = storageType(pointwise.inputs[input]!);
  return walk === 'one' ? type : `Vector<${type}, N>`;
}

function load({ input, walk }: FusedSignature['read'][number]): string {
  if (walk === 'one') return `in${input}[0]`;
  if (walk === 'rows') return `looked_up<N>(in${input}, ids, at, column)`;
  return `load_vector<N>(in${input} + ${walk === 'columns' ? 'column' : 'at'})`;
}

/** Calculates every output from `loaded` and, in an epilogue, `made`, and stores those that are written to memory. */
function calculation(fused: FusedSignature, last: string): string {
  const { pointwise, stores, read } = fused;
  const walks = new Map(read.map(({ input, walk }) => [input, walk]));
  const value = (input: number) => {
    const walk = walks.get(input);
    if (walk === null) return 'convert<Compute>(made[j])';
    return `convert<Compute>(loaded.vector${input}${walk === 'one' ? '' : '[j]'})`;
  };
  return `${lines(pointwise.outputs, (dtype, i) => `    Vector<${storageType(dtype)}, N> result${i};`)}
#pragma unroll
    for (int j = 0; j < N; j++) {
      ${evaluate(pointwise, placesRead(fused), value, (i) => `result${i}[j]`)}
      ${last}
    }
${lines(pointwise.outputs, (_, i) => stores[i] === true && `    store_vector(out${i} + at, result${i});`)}`;
}

function inMemory({ read }: Pick<FusedSignature, 'read'>): FusedSignature['read'] {
  return read.filter(({ walk }) => walk !== null);
}

function lines<T>(items: readonly T[], line: (item: T, index: number) => string | false | null): string {
  return items.map(line).filter(Boolean).join('\n');
}

/** The values of a prologue's or epilogue's members, in their order. */
export interface FusedArguments {
  readonly addresses: readonly number[];
  readonly scalars: readonly number[];
}

/** The bytes of `Fusion`: for each part pointers, then scalars; a part without members is one byte, padded to a pointer. */
export function fusionArgument(
  { prologue, epilogue }: FusionSignatures,
  arguments_: readonly [prologue: FusedArguments, epilogue: FusedArguments],
): Uint8Array {
  const parts = [prologue, epilogue].map((fused, i) =>
    fused ? packed(scalarDType(fused.pointwise), arguments_[i]!) : new Uint8Array(pointerBytes),
  );
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

function packed(dtype: DType, { addresses, scalars }: FusedArguments): Uint8Array {
  const scalarBytes = dtype === 'float64' ? 8 : 4;
  const length = pointerBytes * addresses.length + scalarBytes * scalars.length;
  const view = new DataView(new ArrayBuffer(Math.ceil(length / pointerBytes) * pointerBytes));
  addresses.forEach((address, i) => view.setBigUint64(pointerBytes * i, BigInt(address), true));
  scalars.forEach((scalar, i) => {
    const at = pointerBytes * addresses.length + scalarBytes * i;
    if (dtype === 'float64') view.setFloat64(at, scalar, true);
    else view.setFloat32(at, scalar, true);
  });
  return new Uint8Array(view.buffer);
}

/** The specs of kernels with one fusion: the same object for the same plain spec. */
export class FusionSpecs {
  readonly #headers: Readonly<Record<string, string>>;
  readonly #specs = new Map<KernelSpec, KernelSpec>();

  constructor(signatures: FusionSignatures) {
    this.#headers = { 'fusion.cuh': fusionSource(signatures) };
  }

  with(argument: Uint8Array): KernelFusion {
    return { argument, kernel: (spec) => this.#specOf(spec) };
  }

  #specOf(spec: KernelSpec): KernelSpec {
    let own = this.#specs.get(spec);
    if (!own) this.#specs.set(spec, (own = { ...spec, headers: this.#headers }));
    return own;
  }
}
