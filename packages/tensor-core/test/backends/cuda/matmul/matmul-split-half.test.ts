import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import * as t from '../../../../src/index.ts';
import type { MatmulRequest } from '../../../../src/op/cuda-lowering.ts';
import {
  type ProductSizes,
  describeFloat32Products,
  float32Roundoff,
  productErrors,
  productOperands,
} from '../../../op-cases/matrix/float32-product.ts';
import { describeMatmul } from '../../../op-cases/generic.ts';
import { sampleNumbers } from '../../../op-cases/support/samples.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openSplitHalfDevice } from './emulated-split-half.ts';

describe.skipIf(!hostCompilerVersion())('the split-half product, emulated', () => {
  const { device, product } = openSplitHalfDevice();
  const onDevice = (values: Float32Array) => t.fromTypedArray(values, [values.length], { device });

  describeMatmul(() => device);

  // Ragged tiles with several K blocks, and a single product of few elements.
  describeFloat32Products(
    () => device,
    [
      { m: 70, n: 66, k: 150 },
      { m: 2, n: 3, k: 20 },
    ],
  );

  it('multiplies floats of any kind as IEEE arithmetic does', () => {
    const anyFloat = fc.oneof(
      { weight: 4, arbitrary: fc.float({ noNaN: true, noDefaultInfinity: true }) },
      { weight: 2, arbitrary: fc.float({ min: -2, max: 2, noNaN: true }) },
      { weight: 1, arbitrary: fc.float() },
      { weight: 2, arbitrary: fc.constantFrom(0, 1, 2 ** -149, 2 ** -126, 2 ** -28, 2 ** -29, 3e38) },
    );
    const size = fc.integer({ min: 1, max: 4 });
    const data = fc.tuple(size, size, fc.integer({ min: 1, max: 80 })).chain(([m, n, k]) => {
      const matrix = (length: number) => fc.array(anyFloat, { minLength: length, maxLength: length });
      return fc.tuple(fc.constant({ m, n, k }), matrix(m * k), matrix(k * n));
    });
    fc.assert(
      fc.property(data, ([sizes, valuesA, valuesB]) => {
        const operands = { a: Float32Array.from(valuesA), b: Float32Array.from(valuesB) };
        const { m, n, k } = sizes;
        const result = t.scope(() => {
          const a = t.fromTypedArray(operands.a, [m, k], { device });
          return t.matmul(a, t.fromTypedArray(operands.b, [k, n], { device })).toFlatArray();
        });
        const { worst, wrong } = productErrors(result, operands, sizes);
        expect(wrong).toBe(0);
        // Of each K block's own sum: 20 u by the split, 34 u by truncation on tensor cores, 2 u by its promotions
        // and 2 u more by those of the block after it. See split_half.cuh and matmul_split_half.cu.
        expect(worst).toBeLessThanOrEqual((20 + 34 + 2 * 2) * float32Roundoff);
      }),
      { numRuns: 400, seed: 7 },
    );
  });

  it.each(['first', 'last'])(
    'plans anew for products that differ in one part alone, the plainest %s',
    (order) => {
      const { device } = openSplitHalfDevice();
      type Operand = readonly [shape: readonly number[], laid?: (x: t.Tensor) => t.Tensor];
      const two: Operand = [[2, 8, 8]];
      const three: Operand = [[3, 8, 8]];
      const repeated: Operand = [[1, 8, 8], (x) => t.expand(x, [2, 8, 8])];
      const transposed: Operand = [[2, 8, 8], (x) => t.transpose(x)];
      const products: Record<string, readonly [Operand, Operand]> = {
        plain: [two, two],
        m: [[[2, 9, 8]], two],
        n: [two, [[2, 8, 9]]],
        k: [[[2, 8, 9]], [[2, 9, 8]]],
        batch: [three, three],
        'transposed A': [transposed, two],
        'transposed B': [two, transposed],
        'one A': [repeated, two],
        'one B': [two, repeated],
      };
      const names = Object.keys(products);
      // Small integers, whose products are exact.
      const multiply = (operands: readonly [Operand, Operand], on: t.Device) =>
        t.scope(() => {
          const [a, b] = operands.map(([shape, laid], side) => {
            const values = Float32Array.from(
              { length: t.sizeOf(shape) },
              (_, i) => ((i * (5 + side)) % 11) - 5,
            );
            const x = t.fromTypedArray(values, shape, { device: on });
            return laid ? laid(x) : x;
          });
          return t.matmul(a!, b!).toFlatArray();
        });
      for (const name of order === 'first' ? names : names.toReversed()) {
        const expected = multiply(products[name]!, t.device('cpu'));
        expect([name, multiply(products[name]!, device)]).toEqual([name, expected]);
      }
    },
  );

  it('keeps to the pitch and the batch strides, and scales', () => {
    const sizes: ProductSizes = { m: 5, n: 7, k: 70 };
    const { m, n, k } = sizes;
    const [pitchA, pitchB, pitchD] = [k + 3, n + 2, n + 4];
    const batches = [1, 2].map((seed) => productOperands('any range in both', sizes, seed));
    const pitched = (parts: readonly Float32Array[], rows: number, columns: number, pitch: number) => {
      const whole = new Float32Array(parts.length * rows * pitch).fill(NaN);
      parts.forEach((part, batch) =>
        part.forEach((value, at) => {
          whole[(batch * rows + Math.floor(at / columns)) * pitch + (at % columns)] = value;
        }),
      );
      return whole;
    };
    t.scope(() => {
      const a = onDevice(
        pitched(
          batches.map((batch) => batch.a),
          m,
          k,
          pitchA,
        ),
      );
      const b = onDevice(
        pitched(
          batches.map((batch) => batch.b),
          k,
          n,
          pitchB,
        ),
      );
      const before = Float32Array.from(sampleNumbers(2 * m * pitchD, [-1, 1], 5));
      const d = onDevice(before);
      const request: MatmulRequest = {
        ...sizes,
        ...{ batch: 2, inputDType: 'float32', outputDType: 'float32', transposeA: false, transposeB: false },
        ...{ a: a.address, b: b.address, d: d.address, pitchA, pitchB, pitchD },
        ...{ batchStrideA: m * pitchA, batchStrideB: k * pitchB, batchStrideD: m * pitchD },
        ...{ scale: 0.5 },
      };
      expect(product.tryRun(request, true)).toBe(true);
      const after = d.toFlatArray();
      batches.forEach((operands, batch) => {
        const first = batch * m * pitchD;
        const own = Array.from({ length: m * n }, (_, at) => {
          const place = first + Math.floor(at / n) * pitchD + (at % n);
          return { sum: 2 * after[place]! };
        });
        const { worst, wrong } = productErrors(
          own.map(({ sum }) => sum),
          operands,
          sizes,
        );
        expect(wrong).toBe(0);
        expect(worst).toBeLessThan((20 + 34 + 4) * float32Roundoff);
      });
      const padding = after.filter((_, at) => at % pitchD >= n);
      expect(padding).toEqual(Array.from(before).filter((_, at) => at % pitchD >= n));
    });
  });
});
