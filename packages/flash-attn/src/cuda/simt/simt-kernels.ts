import { type DType, type KernelSpec, byteSize } from '@roofline/tensor-core';
import { type KernelVariants, kernelVariants, packageKernels } from '@roofline/cuda';
import { storageType } from '@roofline/tensor-core/kernel-api';
import { accumulatorDType } from '../../dtypes.ts';
import { announcing } from '../announced-kernel.ts';
import type { FlashCall } from '../flash-call.ts';
import { flashParams } from '../flash-params.ts';
import type { SimtPlan, Tile } from '../kernel-plan.ts';

const source = packageKernels(import.meta.url)('simt/flash_simt.cu');
const parameters = { p: 'struct' } as const;
const forwardKernel = kernelVariants(source, 'flash_forward', parameters);
const deltaKernel = kernelVariants(source, 'flash_delta', parameters);
const gradKeysKernel = kernelVariants(source, 'flash_grad_keys', parameters);
const gradQueriesKernel = kernelVariants(source, 'flash_grad_queries', parameters);
const threads = 256;
const rowsPerDeltaBlock = threads / 32;

/** What each of the kernels takes, besides its tile: see kernels/simt/flash_simt.cu. */
interface SimtLaunch {
  readonly call: FlashCall;
  readonly plan: SimtPlan;
  readonly params: Uint8Array;
}

export function launchSimtForward(call: FlashCall, plan: SimtPlan): void {
  const { sizes } = call;
  const launch = { call, plan, params: flashParams(call.tensors, call.rows, sizes, call.settings) };
  const tiles = Math.ceil(sizes.queries / plan.forward.queries);
  launchTiles(launch, forwardKernel, plan.forward, tiles * sizes.heads * sizes.batch);
}

/** Queries and keys may be none: what sees nothing, or is not seen, gets a gradient of zeros. */
export function launchSimtBackward(call: FlashCall, plan: SimtPlan): void {
  const { context, dtype, sizes, settings } = call;
  const { batch, heads, keyHeads, queries, keys } = sizes;
  const { backward } = plan;
  const rows = batch * heads * queries;
  const delta = rows === 0 ? null : context.workspace(rows * byteSize(accumulatorDType(dtype)));
  const params = flashParams(call.tensors, { ...call.rows, delta }, sizes, settings);
  const launch = { call, plan, params };
  launchTiles(launch, deltaKernel, backward, Math.ceil(rows / rowsPerDeltaBlock), 0);
  launchTiles(launch, gradKeysKernel, backward, Math.ceil(keys / backward.keys) * keyHeads * batch);
  launchTiles(launch, gradQueriesKernel, backward, Math.ceil(queries / backward.queries) * heads * batch);
}

function launchTiles(
  { call: { context, dtype }, plan, params }: SimtLaunch,
  kernel: KernelVariants<typeof parameters>,
  tile: Tile,
  blocks: number,
  sharedBytes = tile.sharedBytes,
): void {
  if (blocks === 0) return;
  const spec = announcing(kernel(definesOf(dtype, plan, tile)), sharedBytes);
  context.kernel(spec).launch([blocks, 1, 1], threads, sharedBytes, kernel.byName({ p: params }));
}

/** What `launchSimtForward` launches. */
export function simtForwardKernels({ dtype }: Pick<FlashCall, 'dtype'>, plan: SimtPlan): KernelSpec[] {
  return [forwardKernel(definesOf(dtype, plan, plan.forward))];
}

/** The file of what `launchSimtBackward` launches, whose kernels are compiled together: one of them. */
export function simtBackwardKernels({ dtype }: Pick<FlashCall, 'dtype'>, plan: SimtPlan): KernelSpec[] {
  return [gradKeysKernel(definesOf(dtype, plan, plan.backward))];
}

/** The macros of flash_simt.cu. */
function definesOf(dtype: DType, { headDimension }: SimtPlan, { queries, keys }: Tile) {
  return { ELEMENT: storageType(dtype), HEAD_DIM: headDimension, BLOCK_M: queries, BLOCK_N: keys };
}
