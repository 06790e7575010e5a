import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { DType, Tensor } from '../../../src/index.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../src/testing.ts';

const rows = 3;

describe.skipIf(hostCompilerVersion() === null)('rows that begin between vectors (needs g++)', () => {
  const device = openEmulatedDevice();

  /** The same numbers at the start of memory of their own, and behind one element of another. */
  function placed(shape: readonly number[], dtype: DType, seed: number): Tensor[] {
    const size = shape.reduce((product, length) => product * length, 1);
    const flat = t.cast(t.randn([size + 1], { device, seed }), dtype);
    const between = t.view(t.slice(flat, 0, 1, size + 1), shape);
    return [t.copy(between), between].map((x) => x.detach());
  }

  const ids = t.tensor([5, 0, 11], { device, dtype: 'int64' });
  const ops: Record<string, (x: Tensor, weight: Tensor, bias: Tensor) => Tensor> = {
    softmax: (x) => t.softmax(x, -1),
    logSoftmax: (x) => t.logSoftmax(x, -1),
    rmsNorm: (x, weight) => t.rmsNorm(x, weight),
    layerNorm: (x, weight, bias) => t.layerNorm(x, weight, bias),
    crossEntropy: (x) => t.crossEntropy(x, ids),
  };
  const cases = Object.keys(ops).flatMap((op) =>
    (['float32', 'bfloat16'] as const).flatMap((dtype) =>
      [48].map((columns) => [op, dtype, columns] as const),
    ),
  );

  it.each(cases)('are added in the same order, by %s in %s of %i columns', (op, dtype, columns) => {
    const [x, weight, bias] = [[rows, columns], [columns], [columns]].map((shape, i) =>
      placed(shape, dtype, i + 1),
    ) as [Tensor[], Tensor[], Tensor[]];
    const upstream = t.randn([rows, columns], { device, seed: 9 });
    const seen = [0, 1].map((place) => {
      const leaves = [x, weight, bias].map((both) => both[place]!.detach().requiresGrad_());
      const y = ops[op]!(leaves[0]!, leaves[1]!, leaves[2]!);
      t.sum(t.mul(y, upstream)).backward();
      return [y.detach(), ...leaves.map(({ grad }) => grad)].map((z) => z && z.toFlatArray());
    });
    expect(seen[1]).toEqual(seen[0]);
  });
});
