import { expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import { swiglu } from '../../../src/ops/nn/swiglu.ts';
import { sample, tensorOf, unitRoundoff } from '../support/samples.ts';
import {
  type OpenDevice,
  type Reference,
  expectFiniteDifferences,
  expectReference,
  floatingPointDTypes,
} from '../support/vector-jacobian.ts';

function swigluReference(a: number[], b: number[]): Reference {
  const sigmoid = a.map((x) => 1 / (1 + Math.exp(-x)));
  return {
    y: a.map((x, i) => x * sigmoid[i]! * b[i]!),
    gradients: (g) => [
      a.map((x, i) => g[i]! * b[i]! * sigmoid[i]! * (1 + x * (1 - sigmoid[i]!))),
      a.map((x, i) => g[i]! * x * sigmoid[i]!),
    ],
  };
}

/** swiglu on one device. */
export function describeSwiglu(open: OpenDevice, dtypes = floatingPointDTypes): void {
  it.each(dtypes)('agrees with float64 in %s, and so do its gradients', (dtype) => {
    for (const shape of [[1], [3, 5], [2, 40, 96], [300, 1001]]) {
      t.scope(() => {
        const inputs = [16, 17].map((seed) => sample(shape, { dtype, domain: [-8, 8], seed }, open()));
        expectReference((a, b) => swiglu(a!, b!), inputs, swigluReference);
      });
    }
  });

  it('has the gradients that finite differences show', () => {
    t.scope(() => {
      const inputs = [18, 19].map((seed) => sample([3, 4], { dtype: 'float64', seed }, open()));
      expectFiniteDifferences((a, b) => swiglu(a!, b!), inputs);
    });
  });

  // What torch.nn.functional.silu(a) * 2 gives, and its gradients.
  it.each([
    { a: -Infinity, y: NaN, da: NaN, db: NaN },
    { a: -3e38, y: 0, da: 0, db: 0 },
    { a: -1000, y: 0, da: 0, db: 0 },
    { a: -20, y: -8.244614472760815e-8, da: -7.832383732129356e-8, db: -4.122307236380407e-8 },
    { a: 0, y: 0, da: 1, db: 0 },
    { a: 15, y: 29.99999082293319, da: 2.0000085652595465, db: 14.999995411466594 },
    { a: 3e7, y: 6e7, da: 2, db: 3e7 },
    { a: 1e38, y: 2e38, da: 2, db: 1e38 },
    { a: Infinity, y: Infinity, da: NaN, db: Infinity },
    { a: NaN, y: NaN, da: NaN, db: NaN },
  ])('of a = $a and b = 2 is what PyTorch has', ({ a, y, da, db }) => {
    for (const dtype of ['float32', 'float64'] as const) {
      t.scope(() => {
        const inputs = [a, 2].map((value) => tensorOf([value], [1], dtype, open()).requiresGrad_());
        const result = swiglu(inputs[0]!, inputs[1]!);
        t.sum(result).backward();
        const values = [result, inputs[0]!.grad!, inputs[1]!.grad!].map((tensor) => tensor.item());
        [y, da, db].forEach((expected, i) => {
          if (Number.isFinite(expected)) {
            const bound = 8 * unitRoundoff[dtype]! * Math.abs(expected);
            expect(Math.abs(values[i]! - expected)).toBeLessThanOrEqual(bound);
          } else {
            expect(values[i]).toBe(expected);
          }
        });
      });
    }
  });

  it('reads strided inputs and promotes dtypes', () => {
    t.scope(() => {
      const a = t.transpose(sample([4, 6], { seed: 20 }, open()));
      const b = t.cast(sample([6, 4], { seed: 21 }, open()), 'bfloat16');
      const y = swiglu(a, b);
      expect(y.dtype).toBe('float32');
      expect(y.toFlatArray()).toEqual(swiglu(t.contiguous(a), t.cast(b, 'float32')).toFlatArray());
    });
  });

  it('keeps nothing but its operands for the backward pass', () => {
    t.scope(() => {
      const inputs = [22, 23].map((seed) => sample([8, 8], { seed }, open()).requiresGrad_());
      const before = open().memoryStatistics().liveStorages;
      const y = swiglu(inputs[0]!, inputs[1]!);
      expect(open().memoryStatistics().liveStorages).toBe(before + 1);
      y.dispose();
    });
  });

  it('names shapes and dtypes that do not fit', () => {
    t.scope(() => {
      const a = sample([2, 3], {}, open());
      expect(() => swiglu(a, sample([3], {}, open()))).toThrow('a [2, 3] and b [3] must be of one shape');
      expect(() => swiglu(t.cast(a, 'int32'), t.cast(a, 'int32'))).toThrow('a must be floating-point');
    });
  });
}
