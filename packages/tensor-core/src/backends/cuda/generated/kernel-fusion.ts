import type { KernelFusion } from '../../../op/cuda-lowering.ts';
import type { KernelSpec } from '../../../cuda/kernel.ts';
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
 * How a kernel that works on [rows, columns] reads an operand: element by element, one for each column, one for all, or by
 * rows of a table whose numbers lie in memory.
 */
export type OperandWalk = 'dense' | 'columns' | 'one' | 'rows';

/** A table whose rows an edge reads by their numbers. */
export interface RowLookup {
  /** Of the numbers. */
  readonly ids: DType;
  readonly rows: number;
  readonly columns: number;
}

/** Element-wise work at an edge of a kernel, whose operands but one lie in memory. */
export interface FusedSignature {
  readonly pointwise: PointwiseSignature;
  /** The inputs that the expressions read, and how; null for the one that the kernel has made. */
  readonly read: readonly { readonly input: number; readonly walk: OperandWalk | null }[];
  /** Of each output, whether it is written to memory. */
  readonly stores: readonly boolean[];
  /** Behind a kernel: whether what it has made is written to memory, too. */
  readonly storesResult: boolean;
  /** Before a kernel: which output it works on. */
  readonly result: number;
  /** Before a kernel: of the operand that is read by rows. */
  readonly lookup?: RowLookup;
}

/** What stands before and behind a kernel; null for nothing. */
export interface FusionSignatures {
  readonly before: FusedSignature | null;
  readonly after: FusedSignature | null;
}

const pointerBytes = 8;

/** The text of the header fusion.cuh; see there. */
export function fusionSource({ before, after }: FusionSignatures): string {
  return `#include "no_fusion.cuh"
#include "wide_vector.cuh"

namespace before {
${before ? beforeSource(before) : 'using Edge = NoBefore;'}
}
namespace after {
${after ? afterSource(after) : 'using Edge = NoAfter;'}
}
constexpr bool kHasBefore = ${before !== null};
using Before = before::Edge;
using After = after::Edge;
struct Edges {
  Before before;
  After after;
};
`;
}

function beforeSource(edge: FusedSignature): string {
  return `${evaluateSource(edge.pointwise, placesRead(edge))}
${edge.lookup ? lookupSource(edge.lookup) : ''}
struct Edge {
${members(edge)}

  template <int N, typename Stored>
  __device__ __forceinline__ Vector<Stored, N> load(const Stored*, int64 at, int column) const {
    Vector<Stored, N> x;
    ${loadedSource(edge)}
${calculation(edge, `x[j] = kept_apart(result${edge.result}[j]);`)}
    return x;
  }
};`;
}

/** As the op embedding looks rows up: NaN where there is none. */
function lookupSource({ ids, rows, columns }: RowLookup): string {
  return `template <int N, typename Stored>
__device__ __forceinline__ WideVector<Stored, N> looked_up(const Stored* table, const ${storageType(ids)}* ids, int64 at, int column) {
  const int64 id = ids[at / ${columns}];
  if (id >= 0 && id < ${rows}) return load_wide<N>(table + id * ${columns} + column);
  WideVector<Stored, N> none;
#pragma unroll
  for (int j = 0; j < N; j++) none[j] = convert<Stored>(lowest<Compute>() - lowest<Compute>());
  return none;
}
`;
}

function afterSource(edge: FusedSignature): string {
  return `${evaluateSource(edge.pointwise, placesRead(edge))}
struct Edge {
${members(edge)}

  template <int N>
  struct Loaded {
${lines(edge.read, ({ input, walk }) => walk && `    ${elementsType(edge, input, walk)} vector${input};`)}
  };

  template <int N>
  __device__ __forceinline__ Loaded<N> load(int64 at, int column) const {
    return {${inMemory(edge)
      .map((operand) => load(operand))
      .join(', ')}};
  }

  template <int N, typename Stored>
  __device__ __forceinline__ void store(Stored* address, int64 at, Loaded<N> loaded, const compute_t<Stored> (&x)[N]) const {
    Vector<Stored, N> made;
#pragma unroll
    for (int j = 0; j < N; j++) made[j] = kept_apart(convert<Stored>(x[j]));
${edge.storesResult ? '    store_vector(address + at, made);' : ''}
${calculation(edge, '')}
  }
};`;
}

/** The structure `loaded` of what lies in memory, as a function's own. */
function loadedSource(edge: FusedSignature): string {
  const fields = lines(
    edge.read,
    ({ input, walk }) => walk && `      ${elementsType(edge, input, walk)} vector${input};`,
  );
  const values = inMemory(edge).map((operand) => load(operand));
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
  return walk === 'one' ? type : `WideVector<${type}, N>`;
}

function load({ input, walk }: FusedSignature['read'][number]): string {
  if (walk === 'one') return `in${input}[0]`;
  if (walk === 'rows') return `looked_up<N>(in${input}, ids, at, column)`;
  return `load_wide<N>(in${input} + ${walk === 'columns' ? 'column' : 'at'})`;
}

/** Every output's elements from `loaded` and, behind a kernel, `made`; those that memory keeps are stored. */
function calculation(edge: FusedSignature, last: string): string {
  const { pointwise, stores, read } = edge;
  const walks = new Map(read.map(({ input, walk }) => [input, walk]));
  const value = (input: number) => {
    const walk = walks.get(input);
    if (walk === null) return 'convert<Compute>(made[j])';
    return `convert<Compute>(loaded.vector${input}${walk === 'one' ? '' : '[j]'})`;
  };
  return `${lines(pointwise.outputs, (dtype, i) => `    WideVector<${storageType(dtype)}, N> result${i};`)}
#pragma unroll
    for (int j = 0; j < N; j++) {
      ${evaluate(pointwise, placesRead(edge), value, (i) => `result${i}[j]`)}
      ${last}
    }
${lines(pointwise.outputs, (_, i) => stores[i] === true && `    store_wide(out${i} + at, result${i});`)}`;
}

function inMemory({ read }: Pick<FusedSignature, 'read'>): FusedSignature['read'] {
  return read.filter(({ walk }) => walk !== null);
}

function lines<T>(items: readonly T[], line: (item: T, index: number) => string | false | null): string {
  return items.map(line).filter(Boolean).join('\n');
}

/** Where an edge's operands lie, in the order of its members. */
export interface FusedArguments {
  readonly addresses: readonly number[];
  readonly scalars: readonly number[];
}

/** The bytes of `Edges`: of each edge the pointers, then the scalars; an edge without members has one byte. */
export function fusionArgument(
  { before, after }: FusionSignatures,
  arguments_: readonly [before: FusedArguments, after: FusedArguments],
): Uint8Array {
  const parts = [before, after].map((edge, i) =>
    edge ? packed(scalarDType(edge.pointwise), arguments_[i]!) : new Uint8Array(pointerBytes),
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

/** Makes specs of one kernel's edges, the same object for the same spec. */
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
