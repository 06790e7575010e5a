import {
  type GradientProduct,
  type LowPrecisionCopies,
  type MemoryView,
  type PlacedTensor,
} from '@roofline/tensor-core';
import { type CudaProperties, KernelStruct } from '@roofline/cuda';
import { HostMemory } from '@roofline/cuda/host';
import { type CudaDevice, sameShape } from '@roofline/tensor-core/kernel-api';

// These mirror kernels/product_tiles.cuh.
/** Products that one launch takes. */
export const mostProducts = 12;
const tileSide = 128;
const tileDepth = 64;
const boxColumns = 64;
const stages = 4;
const barriers = 2 * stages + 4;
/** Dynamic shared memory of a block. */
export const productSharedBytes =
  1024 + stages * 2 * tileSide * tileDepth * 2 + tileSide * tileSide * 4 + 8 * barriers;

/** GradientProduct of kernels/product_tiles.cuh. */
export const gradientProductStruct = new KernelStruct('GradientProduct', {
  dy: 'tensorMap',
  x: 'tensorMap',
  parameter: 'pointer',
  first: 'pointer',
  second: 'pointer',
  copy: 'pointer',
  m: 'int32',
  n: 'int32',
  k: 'int32',
  firstTile: 'int32',
});

const productsBytes = mostProducts * gradientProductStruct.byteLength;
/** ProductTable of kernels/product_tiles.cuh. */
export const productTableLayout = {
  byteLength: productsBytes + 64,
  offsets: { products: 0, productCount: productsBytes, tileCount: productsBytes + 4 },
};

/** Only Hopper has wgmma; its successor is programmed another way. */
const computeCapability = 90;
/**
 * Tiles for each multiprocessor, of products of so many rows, that make a launch worth its beginning and its end, where half of
 * the units stand still: on an H200 a weight of 26 M elements alone took 1.1 of its share of a layer of 105 M.
 */
const enoughTiles = { count: 32, rows: 2048 };
/**
 * Rows of dY and X up to which this is faster than a library's product and an update of its own: 0.75 of their time for 1,024
 * rows, 0.86 for 8,192 and 0.96 for 16,384 on an H200.
 */
const mostRows = 8192;

/** FLOPs of products that make a launch worth its start. */
export function enoughFlops({ multiprocessors }: Pick<CudaProperties, 'multiprocessors'>): number {
  return multiprocessors * enoughTiles.count * 2 * tileSide ** 2 * enoughTiles.rows;
}

/** Whether a launch takes dense float32 matrices, with a dense copy or null, whose gradient is this product. */
export function takesProduct(
  properties: CudaProperties,
  written: readonly PlacedTensor[],
  copy: PlacedTensor | null,
  { dy, x }: GradientProduct,
): boolean {
  const [m, k, n] = [dy.shape[0]!, dy.shape[1]!, x.shape[1]!];
  const isDense = ({ shape, strides, offset }: PlacedTensor) =>
    sameShape(shape, [m, n]) && strides[1] === 1 && strides[0] === n && offset % 4 === 0;
  // TMA copies rows that begin at multiples of 16 bytes.
  const isReadable = (pitch: number, columns: number, offset: number) =>
    pitch % 8 === 0 && pitch >= columns && offset % 8 === 0;
  return (
    properties.computeCapability === computeCapability &&
    n % 4 === 0 &&
    k > 0 &&
    k <= mostRows &&
    written.every((tensor) => tensor.dtype === 'float32' && isDense(tensor)) &&
    (copy === null || isDense(copy)) &&
    (dy.dtype === 'bfloat16' || dy.dtype === 'float16') &&
    dy.dtype === x.dtype &&
    dy.strides[0] === 1 &&
    isReadable(dy.strides[1]!, m, dy.offset) &&
    x.strides[1] === 1 &&
    isReadable(x.strides[0]!, n, x.offset)
  );
}

/** A launch over products: how many tiles there are, and the bytes of its ProductTable, the same array at each call. */
export interface ProductLaunch {
  readonly tiles: number;
  readonly table: Uint8Array;
}

let memory: HostMemory | null = null;

/** The table for parameters, first and second moments, dYᵀ and X by tensor. */
export function productLaunch(
  device: Pick<CudaDevice, 'encodeTensorMap'>,
  [parameters, firsts, seconds, dys, xs]: readonly (readonly MemoryView[])[],
  copies: LowPrecisionCopies | undefined,
): ProductLaunch {
  memory ??= new HostMemory(productTableLayout.byteLength);
  const { byteLength, tensorMaps, int64, words } = gradientProductStruct;
  const encode = ({ address, dtype }: MemoryView, columns: number, rows: number, pitch: number, at: number) =>
    device.encodeTensorMap(
      {
        dtype: dtype as 'bfloat16',
        address,
        dimensions: [columns, rows, 1, 1],
        strideBytes: [2 * pitch, 2 * pitch * rows, 2 * pitch * rows],
        box: [boxColumns, tileDepth, 1, 1],
        swizzle: '128B',
        l2Promotion: '256B',
      },
      memory!,
      at,
    );
  let tiles = 0;
  parameters!.forEach((parameter, i) => {
    const [dy, x] = [dys![i]!, xs![i]!];
    const [m, k, n] = [dy.shape[0]!, dy.shape[1]!, x.shape[1]!];
    const at = i * byteLength;
    encode(dy, m, k, dy.strides[1]!, at + tensorMaps.dy);
    encode(x, n, k, x.strides[0]!, at + tensorMaps.x);
    memory!.writeInt64(at + int64.parameter, parameter.address);
    memory!.writeInt64(at + int64.first, firsts![i]!.address);
    memory!.writeInt64(at + int64.second, seconds![i]!.address);
    memory!.writeInt64(at + int64.copy, copies?.[i]?.address ?? 0);
    const word = at / 4;
    memory!.words[word + words.m] = m;
    memory!.words[word + words.n] = n;
    memory!.words[word + words.k] = k;
    memory!.words[word + words.firstTile] = tiles;
    tiles += Math.ceil(m / tileSide) * Math.ceil(n / tileSide);
  });
  const { productCount, tileCount } = productTableLayout.offsets;
  memory.words[productCount / 4] = parameters!.length;
  memory.words[tileCount / 4] = tiles;
  return { tiles, table: memory.bytes.subarray(0, productTableLayout.byteLength) };
}
