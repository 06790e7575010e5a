import type { CudaContext } from '../../op/cuda-lowering.ts';
import type { MemoryView, StridedMemory } from '../../base/memory-view.ts';
import { storageType } from '../../op/kernel-arguments/c-types.ts';
import { kernelVariants } from '@roofline/cuda';
import { kernelSource } from '../../op/kernel-arguments/kernel-source.ts';

const kernel = kernelVariants(kernelSource('nn/norm_fold.cu'), 'norm_fold', {
  ...{ folds: 'struct', count: 'int32', columns: 'int32' },
});
const threads = 1024;
const columnsOfBlock = 32;

/** The most sums of one launch. */
const mostFolds = 32;

/** Each result [columns] is the sum of the rows of its partials [count, columns], all of one shape and dtype. */
export function foldRows(
  context: CudaContext,
  partials: readonly StridedMemory[],
  results: readonly MemoryView[],
): void {
  const { shape, dtype } = partials[0]!;
  const [count, columns] = shape as [number, number];
  const variant = {
    ACCUMULATOR: storageType(dtype),
    RESULT: storageType(results[0]!.dtype),
    MOST: mostFolds,
  };
  for (let first = 0; first < partials.length; first += mostFolds) {
    const folds = Math.min(mostFolds, partials.length - first);
    const addresses = new BigUint64Array(2 * mostFolds);
    for (let i = 0; i < folds; i++) {
      addresses[i] = BigInt(partials[first + i]!.address);
      addresses[mostFolds + i] = BigInt(results[first + i]!.address);
    }
    const blocks = Math.ceil(columns / columnsOfBlock);
    context
      .kernel(kernel(variant))
      .launch(
        [blocks, folds, 1],
        threads,
        0,
        kernel.byName({ folds: new Uint8Array(addresses.buffer), count, columns }),
      );
  }
}
