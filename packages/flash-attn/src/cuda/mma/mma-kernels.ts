import { type KernelSpec, byteSize } from '@roofline/tensor-core';
import { kernelVariants, packageKernels } from '@roofline/cuda';
import { storageType } from '@roofline/tensor-core/kernel-api';
import { announcing } from '../announced-kernel.ts';
import type { FlashCall } from '../flash-call.ts';
import { flashParams } from '../flash-params.ts';
import {
  type MmaBackwardPlan,
  type MmaBackwardTile,
  type MmaForwardPlan,
  type MmaForwardTile,
  mmaAfterSharedBytes,
  mmaBackwardSharedBytes,
  mmaForwardSharedBytes,
} from './mma-plan.ts';

const kernels = packageKernels(import.meta.url);
const forwardKernel = kernelVariants(kernels('mma/flash_mma_forward.cu'), 'flash_mma_forward', {
  ...{ p: 'struct', partial: 'pointer', splits: 'int32' },
});
const joinKernel = kernelVariants(kernels('mma/flash_mma_join.cu'), 'flash_mma_join', {
  ...{ p: 'struct', partial: 'pointer', splits: 'int32' },
});
const backwardKernel = kernelVariants(kernels('mma/flash_mma_backward.cu'), 'flash_mma_backward', {
  ...{ p: 'struct', rowsMemory: 'pointer', sumsMemory: 'pointer', turns: 'pointer' },
});
const rowsSource = kernels('mma/flash_mma_rows.cu');
const beforeKernel = kernelVariants(rowsSource, 'flash_mma_before', {
  ...{ p: 'struct', rowsMemory: 'pointer', sumsMemory: 'pointer', turns: 'pointer' },
});
const afterKernel = kernelVariants(rowsSource, 'flash_mma_after', { p: 'struct', sumsMemory: 'pointer' });

const warpSize = 32;
const rowsThreads = 128;
const wordBytes = 4;
/** Numbers of a query that the backward pass hands on: see kernels/mma/flash_mma_backward.cuh. */
const numbersOfRow = 3;

const rowsPerTile = 16;

/** Of a row of partial results, in addition to its sums: see kernels/mma/flash_mma_forward.cuh. */
const numbersOfPartialRow = 2;

type Defines = Record<string, string | number>;

interface Shape {
  readonly blocks: number;
  readonly threads: number;
  readonly sharedBytes: number;
}

/** Launches kernels/mma/flash_mma_forward.cu and, where blocks share tiles of queries, flash_mma_join.cu. */
export function launchMmaForward(call: FlashCall, { forward }: MmaForwardPlan): void {
  const { context, sizes } = call;
  const { splits } = forward;
  const tiles = Math.ceil(sizes.queries / forward.queries) * sizes.heads * sizes.batch;
  const rows = sizes.queries * sizes.heads * sizes.batch;
  const isSplit = needsJoin(forward);
  const partial = isSplit
    ? context.workspace(splits * rows * (forward.headDimension + numbersOfPartialRow) * wordBytes)
    : 0;
  const sharedBytes = mmaForwardSharedBytes(forward, byteSize(call.dtype));
  const bytes = flashParams(call.tensors, call.rows, sizes, call.settings);
  const values = forwardKernel.byName({ p: bytes, partial, splits });
  context
    .kernel(forwardSpec(call, forward))
    .launch([splits * tiles, 1, 1], warpSize * forward.warps, sharedBytes, values);
  if (!isSplit) return;
  const blocks = Math.ceil(rows / (rowsThreads / warpSize));
  const join = context.kernel(joinSpec(call, forward));
  join.launch([blocks, 1, 1], rowsThreads, 0, joinKernel.byName({ p: bytes, partial, splits }));
}

/**
 * Launches kernels/mma/flash_mma_backward.cu, and what goes before and after it. The sums of gradQ take `queries · d`
 * float32 of workspace for each head. Queries and keys may be none: what sees nothing, or is not seen, gets a gradient
 * of zeros.
 */
export function launchMmaBackward(call: FlashCall, { backward, deterministic }: MmaBackwardPlan): void {
  const { context, sizes } = call;
  const { batch, heads, keyHeads, queries, keys } = sizes;
  const elementBytes = byteSize(call.dtype);
  const tiles = Math.ceil(queries / backward.queries) * heads * batch;
  const workspace = (words: number) => (words === 0 ? 0 : context.workspace(words * wordBytes));
  const rows = workspace(tiles * backward.queries * numbersOfRow);
  const sums = workspace(tiles * backward.queries * backward.headDimension);
  // Without queries nothing is added, and there are no turns to wait for.
  const isOrdered = deterministic && tiles > 0;
  const turns = workspace(isOrdered ? 1 + tiles * backward.parts : 0);
  const p = flashParams(call.tensors, call.rows, sizes, call.settings);
  const pointers = { rowsMemory: rows, sumsMemory: sums, turns };
  const launch = (
    spec: KernelSpec,
    { blocks, threads, sharedBytes }: Shape,
    values: ReturnType<typeof backwardKernel.byName>,
  ) => {
    if (blocks === 0) return;
    context.kernel(spec).launch([blocks, 1, 1], threads, sharedBytes, values);
  };
  const rowsShape = { blocks: tiles, threads: rowsThreads, sharedBytes: 0 };
  launch(beforeSpec(call, backward), rowsShape, beforeKernel.byName({ p, ...pointers }));
  const shape = {
    blocks: Math.ceil(keys / backward.keys) * backward.parts * keyHeads * batch,
    threads: warpSize * backward.warps,
    sharedBytes: mmaBackwardSharedBytes(backward, elementBytes),
  };
  launch(backwardSpec(call, backward, isOrdered), shape, backwardKernel.byName({ p, ...pointers }));
  const afterShape = { ...rowsShape, sharedBytes: mmaAfterSharedBytes(backward, elementBytes) };
  launch(afterSpec(call, backward), afterShape, afterKernel.byName({ p, sumsMemory: sums }));
}

type VariantCall = Pick<FlashCall, 'dtype'>;

/** What `launchMmaForward` launches. */
export function mmaForwardKernels(call: VariantCall, { forward }: MmaForwardPlan): KernelSpec[] {
  const always = [forwardSpec(call, forward)];
  return needsJoin(forward) ? [...always, joinSpec(call, forward)] : always;
}

/** What `launchMmaBackward` launches where there are queries and keys. */
export function mmaBackwardKernels(
  call: VariantCall,
  { backward, deterministic }: MmaBackwardPlan,
): KernelSpec[] {
  return [beforeSpec(call, backward), backwardSpec(call, backward, deterministic), afterSpec(call, backward)];
}

function forwardSpec(call: VariantCall, tile: MmaForwardTile): KernelSpec {
  const sharedBytes = mmaForwardSharedBytes(tile, byteSize(call.dtype));
  return announcing(forwardKernel(mmaForwardDefines(call, tile)), sharedBytes);
}

function needsJoin({ splits }: MmaForwardTile): boolean {
  return splits > 1;
}

function joinSpec(call: VariantCall, tile: MmaForwardTile): KernelSpec {
  return joinKernel(mmaJoinDefines(call, tile));
}

function beforeSpec(call: VariantCall, tile: MmaBackwardTile): KernelSpec {
  return beforeKernel(mmaRowsDefines(call, tile));
}

function backwardSpec(call: VariantCall, tile: MmaBackwardTile, isOrdered: boolean): KernelSpec {
  const sharedBytes = mmaBackwardSharedBytes(tile, byteSize(call.dtype));
  return announcing(backwardKernel(mmaBackwardDefines(call, tile, isOrdered)), sharedBytes);
}

function afterSpec(call: VariantCall, tile: MmaBackwardTile): KernelSpec {
  const sharedBytes = mmaAfterSharedBytes(tile, byteSize(call.dtype));
  return announcing(afterKernel(mmaRowsDefines(call, tile)), sharedBytes);
}

/** The macros of flash_mma_forward.cu. */
export function mmaForwardDefines({ dtype }: Pick<FlashCall, 'dtype'>, tile: MmaForwardTile): Defines {
  return {
    ELEMENT: storageType(dtype),
    PRODUCTS: tile.products,
    HEAD_DIM: tile.headDimension,
    BLOCK_N: tile.keys,
    WARPS: tile.warps,
    ROW_TILES: tile.queries / (rowsPerTile * tile.warps),
    BLOCKS_PER_SM: tile.blocksPerMultiprocessor,
    HOLD_QUERIES: tile.isHeld ? 1 : 0,
    IS_SPLIT: tile.splits > 1 ? 1 : 0,
  };
}

/** The macros of flash_mma_join.cu. */
export function mmaJoinDefines({ dtype }: Pick<FlashCall, 'dtype'>, tile: MmaForwardTile): Defines {
  return { ELEMENT: storageType(dtype), PRODUCTS: tile.products, HEAD_DIM: tile.headDimension };
}

/** The macros of flash_mma_rows.cu. */
export function mmaRowsDefines({ dtype }: Pick<FlashCall, 'dtype'>, tile: MmaBackwardTile): Defines {
  return {
    ELEMENT: storageType(dtype),
    PRODUCTS: 1,
    HEAD_DIM: tile.headDimension,
    BLOCK_M: tile.queries,
    PARTS: tile.parts,
  };
}

/** The macros of flash_mma_backward.cu. */
export function mmaBackwardDefines(
  call: Pick<FlashCall, 'dtype'>,
  tile: MmaBackwardTile,
  isOrdered: boolean,
): Defines {
  return {
    ...mmaRowsDefines(call, tile),
    PRODUCTS: tile.products,
    SCORE_DIM: tile.scoreDimension,
    WARPS: tile.warps,
    STAGES: tile.stages,
    BLOCKS_PER_SM: tile.blocksPerMultiprocessor,
    HOLD_KEYS: tile.isHeld ? 1 : 0,
    DETERMINISTIC: isOrdered ? 1 : 0,
  };
}
