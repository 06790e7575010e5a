import type { CudaContext, DType, KernelSpec } from '@roofline/tensor-core';
import {
  type KernelVariants,
  kernelVariants,
  packageKernels,
  storageType,
} from '@roofline/tensor-core/native';
import type { AttentionSizes } from '../operands.ts';
import type { SimtPlan, Tile } from './kernel-plan.ts';

const source = packageKernels(import.meta.url)('flash_simt.cu');
const forwardKernel = kernelVariants(source, 'flash_forward', 'T');
const deltaKernel = kernelVariants(source, 'flash_delta', 'T');
const gradKeysKernel = kernelVariants(source, 'flash_grad_keys', 'T');
const gradQueriesKernel = kernelVariants(source, 'flash_grad_queries', 'T');
const threads = 256;
const rowsPerDeltaBlock = threads / 32;

/** What a launch takes, besides the bytes of FlashParams: see kernels/flash_simt.cu. */
interface SimtLaunch {
  readonly context: CudaContext;
  readonly dtype: DType;
  readonly sizes: AttentionSizes;
  readonly plan: SimtPlan;
  readonly params: Uint8Array;
}

export function launchSimtForward(launch: SimtLaunch): void {
  const { sizes, plan } = launch;
  const tiles = Math.ceil(sizes.queries / plan.forward.queries);
  launchTiles(launch, forwardKernel, plan.forward, tiles * sizes.heads * sizes.batch);
}

/** Queries and keys may be none: what sees nothing, or is not seen, gets a gradient of zeros. */
export function launchSimtBackward(launch: SimtLaunch): void {
  const { sizes, plan } = launch;
  const { batch, heads, keyHeads, queries, keys } = sizes;
  const { backward } = plan;
  const rows = batch * heads * queries;
  launchTiles(launch, deltaKernel, backward, Math.ceil(rows / rowsPerDeltaBlock), 0);
  launchTiles(launch, gradKeysKernel, backward, Math.ceil(keys / backward.keys) * keyHeads * batch);
  launchTiles(launch, gradQueriesKernel, backward, Math.ceil(queries / backward.queries) * heads * batch);
}

function launchTiles(
  { context, dtype, plan, params }: SimtLaunch,
  kernel: KernelVariants,
  tile: Tile,
  blocks: number,
  sharedBytes = tile.sharedBytes,
): void {
  if (blocks === 0) return;
  const variant = kernel({
    ELEMENT: storageType(dtype),
    HEAD_DIM: plan.headDimension,
    BLOCK_M: tile.queries,
    BLOCK_N: tile.keys,
  });
  context.kernel(announcing(variant, sharedBytes)).launch([blocks, 1, 1], threads, sharedBytes, [params]);
}

const announced = new Map<KernelSpec, KernelSpec>();

/** The same spec with its dynamic shared memory, which follows from its definitions. */
function announcing(variant: KernelSpec, dynamicSharedBytes: number): KernelSpec {
  let spec = announced.get(variant);
  if (!spec) announced.set(variant, (spec = { ...variant, dynamicSharedBytes }));
  return spec;
}
