import { CublasLt, type CudaDriver, type Scratch, type Streams } from '@roofline/cuda/parts';
import type { CudaContext } from '../../op/cuda-lowering.ts';
import type { Float32Product } from './matmul/matmul.ts';
import { SplitHalfProduct } from './matmul/matmul-split-half.ts';

/** How a device multiplies, so that tests can stand in for it. */
export interface DeviceParts {
  /** Another way than cublasLt to multiply float32 matrices, if this GPU has one. */
  makeFloat32Product(
    context: CudaContext,
    driver: CudaDriver,
    scratch: Scratch,
    streams: Streams,
  ): Float32Product | null;
  /** Called before the first product that needs it. Throws a LibraryNotFoundError if it is missing. */
  loadCublasLt(): CublasLt;
}

/** The parts of a real GPU. */
export const nvidiaParts: DeviceParts = {
  makeFloat32Product: (context, driver, scratch) =>
    context.properties.computeCapability === 90 ? new SplitHalfProduct(context, driver, scratch) : null,
  loadCublasLt: () => new CublasLt(),
};
