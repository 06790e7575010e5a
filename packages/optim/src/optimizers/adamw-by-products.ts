import { cudaDevice, storageType } from '@roofline/tensor-core/kernel-api';
import { kernelFile } from '../kernel-file.ts';
import {
  enoughFlops,
  mostProducts,
  productLaunch,
  productSharedBytes,
  takesProduct,
} from '../multi-tensor/gradient-products.ts';
import type { ProductsByCoefficients } from '../multi-tensor/multi-tensor-op.ts';

const parameters = { table: 'struct', skip: 'pointer', coefficients: 'pointer', factor: 'pointer' } as const;
const plain = kernelFile('adamw_product', parameters, productSharedBytes);
const copying = kernelFile('adamw_product', parameters, productSharedBytes);
const threads = 640;

/** AdamW of parameters whose gradients its kernel, kernels/adamw_product.cu, multiplies itself. */
export const adamwByProducts: ProductsByCoefficients = {
  mostTensors: mostProducts,
  enoughFlops,
  takes: takesProduct,
  /** `lists[l][t]` plays role l for tensor t: parameter, first and second moment, dYᵀ, X. */
  launch(context, lists, [skip], { coefficients, factor }, copies) {
    const device = cudaDevice(context);
    const ELEMENT = storageType(lists.at(-1)![0]!.dtype);
    const copy = copies?.find((each) => each !== null);
    const spec = copy ? copying({ ELEMENT, COPY: storageType(copy.dtype) }) : plain({ ELEMENT });
    const { tiles, table } = productLaunch(device, lists, copies);
    const blocks = Math.min(tiles, context.multiprocessors);
    context
      .kernel(spec)
      .launch(
        [blocks, 1, 1],
        threads,
        productSharedBytes,
        plain.byName({ table, skip: skip?.address ?? 0, coefficients, factor }),
      );
  },
};
