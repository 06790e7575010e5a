import { describe, expect, it } from 'vitest';
import * as t from '../../../../src/index.ts';
import { kernelVariants } from '@roofline/cuda';
import { kernelSource } from '../../../../src/op/kernel-arguments/kernel-source.ts';
import { offsetType } from '../../../../src/op/kernel-arguments/offset-type.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../../src/testing/emulated-device.ts';

describe('offsetType', () => {
  it('leaves room for a step of the grid in 32 bits', () => {
    expect(offsetType(1)).toBe('int32');
    expect(offsetType(2 ** 30)).toBe('int32');
    expect(offsetType(2 ** 30 + 1)).toBe('int64');
    expect(offsetType(2 ** 40)).toBe('int64');
  });
});

/** [2, rows, columns] as `kernel` of lower_triangle.cu writes it, by two blocks that take several steps each. */
const triangle = kernelVariants(kernelSource('shape/lower_triangle.cu'), 'lower_triangle', {
  ...{ x: 'pointer', y: 'pointer', matrices: 'int64', rows: 'int32', columns: 'int32' },
  ...{ diagonal: 'int32', fill: 'float32' },
});
const rope = kernelVariants(kernelSource('nn/rope.cu'), 'rope', {
  ...{ x0: 'pointer', x1: 'pointer', cosine: 'pointer', sine: 'pointer', y0: 'pointer', y1: 'pointer' },
  ...{ n0: 'int32', n1: 'int32', n2: 'int32', length: 'int32', columns: 'int32' },
  ...{ s0: 'int64', s1: 'int64', s2: 'int64', s3: 'int64' },
  ...{ t0: 'int64', t1: 'int64', t2: 'int64', t3: 'int64', sign: 'float32' },
});
const launchShape = [[2, 2, 1], 32, 0] as const;

describe.skipIf(!hostCompilerVersion()).each(['int32', 'int64'])('offsets of %s, emulated', (OFFSET) => {
  const device = openEmulatedDevice();
  const variant = { ELEMENT: 'float', VECTOR_LENGTH: 2, OFFSET };
  const numbers = (shape: readonly number[]) =>
    t.fromTypedArray(
      Float32Array.from({ length: t.sizeOf(shape) }, (_, i) => i + 1),
      shape,
      { device },
    );

  it('reach all elements of matrices', () => {
    const op = t.defineOp({
      name: 'triangle',
      autocast: 'none',
      infer: ([x]) => [x!],
      cuda: {
        kind: 'custom',
        launch: (context, [x], [y]) =>
          context
            .kernel(triangle(variant))
            .launch(...launchShape, [x!.address, y!.address, 5, 30, 18, -1, -2]),
      },
      cpu: { kind: 'host', run: () => {} },
    });
    t.scope(() => {
      const x = numbers([5, 30, 18]);
      const expected = x.toFlatArray().map((value, at) => (at % 18 < Math.floor(at / 18) % 30 ? value : -2));
      expect(t.applyOne(op, [x], undefined).toFlatArray()).toEqual(expected);
    });
  });

  it('reach all pairs of a rotation, through strides', () => {
    const op = t.defineOp({
      name: 'turn',
      autocast: 'none',
      infer: ([x]) => [x!],
      cuda: {
        kind: 'custom',
        launch: (context, [x, cosine, sine], [y]) =>
          context.kernel(rope(variant)).launch(...launchShape, [
            ...[x!, x!, cosine!, sine!, y!, y!].map(({ address }) => address),
            ...[2, 3, 2, 40, 6],
            // Read as [2, 3, 2, 40, 6] out of [3, 2, 2, 40, 6], the first two dimensions swapped, and written densely.
            ...[480, 960, 240, 6],
            ...[1440, 480, 240, 6, 1],
          ]),
      },
      cpu: { kind: 'host', run: () => {} },
    });
    t.scope(() => {
      const x = numbers([3, 2, 2, 40, 6]);
      const [cosine, sine] = [numbers([40, 3]), t.mul(numbers([40, 3]), -1)];
      const [c, s] = [cosine.toFlatArray(), sine.toFlatArray()];
      const turned = t.transpose(x, 0, 1).toFlatArray();
      for (let i = 0; i < turned.length; i += 2) {
        const [a, b, pair] = [turned[i]!, turned[i + 1]!, (i / 2) % 120];
        turned[i] = a * c[pair]! - b * s[pair]!;
        turned[i + 1] = a * s[pair]! + b * c[pair]!;
      }
      expect(t.applyOne(op, [x, cosine, sine], undefined).toFlatArray()).toEqual(turned);
    });
  });
});
