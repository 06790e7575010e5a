import { hostCompilerVersion } from '@roofline/cuda/testing';
import { expect, it } from 'vitest';
import { structLayout } from '../../../../tooling/struct-layout.ts';
import {
  gradientProductStruct,
  productTableLayout,
  takesProduct,
} from '../../src/multi-tensor/gradient-products.ts';

it.skipIf(hostCompilerVersion() === null).each([
  ['GradientProduct', gradientProductStruct],
  ['ProductTable', productTableLayout],
])('product_tiles.cuh lays out %s as the host writes it', (name, { byteLength, offsets }) => {
  const kernels = [new URL('../../kernels/', import.meta.url)];
  const header = { file: 'product_tiles.cuh', defines: { ELEMENT: 'bfloat16' }, kernels };
  expect(structLayout(header, name, Object.keys(offsets))).toEqual({ byteLength, offsets });
});

it('takes as many rows as are faster than by a library', () => {
  const taken = [8192, 8193].map((rows) => {
    const matrix = (dtype: 'float32' | 'bfloat16', shape: [number, number], strides: [number, number]) => ({
      ...{ dtype, shape, strides, offset: 0 },
    });
    const parameter = matrix('float32', [16, 8], [8, 1]);
    const dy = matrix('bfloat16', [16, rows], [1, 16]);
    const x = matrix('bfloat16', [rows, 8], [8, 1]);
    const properties = {
      ...{ multiprocessors: 132, computeCapability: 90, l2Bytes: 2 ** 25, maxSharedBytesPerBlock: 2 ** 17 },
    };
    return takesProduct(properties, [parameter, parameter, parameter], null, { dy, x });
  });
  expect(taken).toEqual([true, false]);
});
