import type { CudaContext } from '../../op/cuda-lowering.ts';
import { type KernelSpec, kernelVariants } from '@roofline/cuda';
import { kernelSource } from '../../op/kernel-arguments/kernel-source.ts';
import type { MemoryView } from '../../base/memory-view.ts';
import { storageType } from '../../op/kernel-arguments/c-types.ts';
import { type DType, byteSize } from '../../base/dtype.ts';
import { planRows } from './cross-entropy.ts';

const countKernel = kernelVariants(kernelSource('nn/cross_entropy_joint.cu'), 'cross_entropy_count', {
  ...{ targets: 'pointer', counts: 'pointer', finished: 'pointer', rows: 'int64', ignored: 'int64' },
});
const jointKernel = kernelVariants(kernelSource('nn/cross_entropy_joint.cu'), 'cross_entropy_joint', {
  ...{ dloss: 'pointer', factor: 'float64', logits: 'pointer', targets: 'pointer', scale: 'pointer' },
  ...{ count: 'pointer', losses: 'pointer', finished: 'pointer', loss: 'pointer', dlogits: 'pointer' },
  ...{ rows: 'int64', columns: 'int32', ignored: 'int64' },
});
const countThreads = 1024;
/** The shared memory that a block needs besides a row. */
const ownSharedBytes = 1024;

/** What the gradient of the logits is multiplied by: one element in memory, or a number. */
export type LossGradient = { readonly memory: MemoryView } | { readonly value: number };

export interface JointCrossEntropy {
  readonly ignoreIndex: number;
  /** That of the loss's logits, whereas what is read and written may be in the dtype that was cast to it, or that it is cast to. */
  readonly dtype: DType;
  /**
   * One element that multiplies the gradient, of which the loss is then the sum over the rows. Default: one over the number
   * of rows that count, of which the loss is then the mean.
   */
  readonly scale?: MemoryView;
}

/**
 * The loss of `crossEntropy` and the gradient of its logits in one pass over the logits, with the same bits as in two. The
 * gradient may be written over the logits.
 */
export function launchJointCrossEntropy(
  context: CudaContext,
  dloss: LossGradient,
  [logits, targets]: readonly MemoryView[],
  [loss, dlogits]: readonly MemoryView[],
  { ignoreIndex, dtype, scale }: JointCrossEntropy,
): void {
  const { rows, columns, variant, grid } = planRows([logits!, dlogits!], targets!, dtype);
  const bytes = byteSize(loss!.dtype);
  const losses = context.workspace(rows * bytes);
  const finished = context.workspace(4);
  const { maxSharedBytesPerBlock } = context.properties;
  const rowBytes = columns * byteSize(logits!.dtype);
  const isStaged = variant.ROW_VECTORS === 0 && rowBytes <= maxSharedBytesPerBlock - ownSharedBytes;
  const types = { ELEMENT: storageType(logits!.dtype), RESULT: storageType(dlogits!.dtype) };
  const defines = { ...variant, ...types, STAGED: Number(isStaged) };
  let counts = 0;
  if (scale) context.fillBytes(finished, 0, 4);
  else {
    counts = context.workspace(2 * bytes);
    context
      .kernel(countKernel(defines))
      .launch(
        [1, 1, 1],
        countThreads,
        0,
        countKernel.byName({ targets: targets!.address, counts, finished, rows, ignored: ignoreIndex }),
      );
  }
  const spec = jointKernel(defines);

  context.kernel(isStaged ? withSharedBytes(spec, maxSharedBytesPerBlock - ownSharedBytes) : spec).launch(
    grid,
    variant.BLOCK_THREADS,
    isStaged ? rowBytes : 0,
    jointKernel.byName({
      dloss: 'memory' in dloss ? dloss.memory.address : 0,
      factor: 'memory' in dloss ? 0 : dloss.value,
      logits: logits!.address,
      targets: targets!.address,
      scale: scale?.address ?? counts,
      count: scale ? 0 : counts + bytes,
      losses,
      finished,
      loss: loss!.address,
      dlogits: dlogits!.address,
      rows,
      columns,
      ignored: ignoreIndex,
    }),
  );
}

const announced = new WeakMap<KernelSpec, KernelSpec>();

/** Returns the same object for the same spec. */
function withSharedBytes(spec: KernelSpec, dynamicSharedBytes: number): KernelSpec {
  let known = announced.get(spec);
  if (known?.dynamicSharedBytes !== dynamicSharedBytes)
    announced.set(spec, (known = { ...spec, dynamicSharedBytes }));
  return known!;
}
