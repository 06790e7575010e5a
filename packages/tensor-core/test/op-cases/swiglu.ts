import { expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { swiglu } from '../../src/ops/nn/swiglu.ts';
import { sample } from './samples.ts';
import {
  type OpenDevice,
  type Reference,
  expectFiniteDifferences,
  expectReference,
  floatingPointDTypes,
} from './vector-jacobian.ts';

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
