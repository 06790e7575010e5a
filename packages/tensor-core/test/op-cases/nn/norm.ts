import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { DType, Device, Shape, Tensor } from '../../../src/index.ts';
import { layerNorm } from '../../../src/ops/nn/layer-norm.ts';
import { rmsNorm } from '../../../src/ops/nn/rms-norm.ts';
import { emulatedMultiprocessors } from '@roofline/cuda/testing';
import { sample } from '../support/samples.ts';
import {
  type OpenDevice,
  type Reference,
  dot,
  expectFiniteDifferences,
  expectReference,
  floatingPointDTypes,
  rowsOf,
} from '../support/vector-jacobian.ts';

const eps = 1e-5;

/** Both norms: rmsNorm is layerNorm without mean and bias. */
function normReference(x: number[], weight: number[], bias?: number[]): Reference {
  const columns = weight.length;
  const normal = rowsOf(x, columns).map((row) => {
    const mean = bias ? row.reduce((a, b) => a + b, 0) / columns : 0;
    const centered = row.map((value) => value - mean);
    const rstd = 1 / Math.sqrt(dot(centered, centered) / columns + eps);
    return { rstd, values: centered.map((value) => value * rstd) };
  });
  return {
    y: normal.flatMap(({ values }) => values.map((value, j) => value * weight[j]! + (bias?.[j] ?? 0))),
    gradients: (g) => {
      const rows = rowsOf(g, columns);
      const dx = rows.flatMap((row, i) => {
        const { rstd, values } = normal[i]!;
        const weighted = row.map((value, j) => value * weight[j]!);
        const along = dot(weighted, values) / columns;
        const mean = bias ? weighted.reduce((a, b) => a + b, 0) / columns : 0;
        return weighted.map((value, j) => rstd * (value - mean - values[j]! * along));
      });
      const overRows = (value: (i: number, j: number) => number) =>
        weight.map((_, j) => rows.reduce((sum, _row, i) => sum + value(i, j), 0));
      const dweight = overRows((i, j) => rows[i]![j]! * normal[i]!.values[j]!);
      return [dx, dweight, ...(bias ? [overRows((i, j) => rows[i]![j]!)] : [])];
    },
  };
}

// Rows that share a warp; a warp each; odd; a block each; more rows than blocks; too long for registers,
// and there too more rows than an emulated GPU has blocks.
const shapesOn = (device: Device): readonly Shape[] => [
  [5, 8],
  [2, 3, 33],
  [7, 256],
  [3, 770],
  [4, 2560],
  [3, 4096],
  [2100, 16],
  [4 * backwardBlocks(device) + 44, 768],
  [9, 17_001],
];

/** The most blocks that the gradient takes; on the CPU, which has none, the emulated GPU's. */
function backwardBlocks(device: Device): number {
  return 2 * Number(device.properties()['multiprocessors'] ?? emulatedMultiprocessors);
}

const ops = [
  { name: 'rmsNorm', fn: (x: Tensor, weight: Tensor) => rmsNorm(x, weight, eps), parameters: 1 },
  { name: 'layerNorm', fn: (x: Tensor, w: Tensor, b?: Tensor) => layerNorm(x, w, b!, eps), parameters: 2 },
] as const;

/** rmsNorm and layerNorm on one device. */
export function describeNorms(open: OpenDevice, dtypes = floatingPointDTypes): void {
  describe.each(ops)('$name', ({ name, fn, parameters }) => {
    const inputsFor = (shape: Shape, dtype: DType, parameterDType = dtype) => [
      sample(shape, { dtype, domain: [-2, 3], seed: 6 }, open()),
      ...Array.from({ length: parameters }, (_, i) =>
        sample([shape.at(-1)!], { dtype: parameterDType, domain: [0.5, 2], seed: 7 + i }, open()),
      ),
    ];
    const apply = fn as (...inputs: Tensor[]) => Tensor;

    it.each(dtypes)('agrees with float64 in %s, and so do its gradients', (dtype) => {
      for (const shape of shapesOn(open())) {
        t.scope(() =>
          expectReference(apply, inputsFor(shape, dtype), normReference, { forward: 8, backward: 16 }),
        );
      }
    });

    it('takes float32 parameters for low-precision activations', () => {
      t.scope(() => expectReference(apply, inputsFor([6, 96], 'bfloat16', 'float32'), normReference));
    });

    it('has the gradients that finite differences show', () => {
      t.scope(() => expectFiniteDifferences(apply, inputsFor([2, 3, 5], 'float64')));
    });

    it('takes a single row, and rows without elements', () => {
      t.scope(() => {
        const [x, ...vectors] = inputsFor([4], 'float32');
        const row = apply(t.reshape(x!, [1, 4]), ...vectors).toFlatArray();
        expect(apply(x!.requiresGrad_(), ...vectors).toFlatArray()).toEqual(row);
        t.sum(apply(x!, ...vectors)).backward();
        const weight = vectors[0]!.requiresGrad_();
        const g = t.full([4], 2, { device: open() });
        apply(x!.detach(), ...vectors).backward(g);
        const doubled = t.div(apply(x!.detach(), t.onesLike(weight), ...vectors.slice(1)), 0.5);
        if (parameters === 1) expect(weight.grad!.toFlatArray()).toEqual(doubled.toFlatArray());
        for (const dtype of ['float32', 'float64'] as const) {
          const empty = inputsFor([2, 0], dtype).map((input) => input.requiresGrad_());
          const y = apply(...empty);
          expect(y.shape).toEqual([2, 0]);
          y.backward(t.zerosLike(y));
          expect(empty.map((input) => input.grad!.shape)).toEqual(empty.map(({ shape }) => shape));
        }
      });
    });

    it('reads strided inputs', () => {
      t.scope(() => {
        const [x, ...vectors] = inputsFor([4, 6, 10], 'float32');
        const strided = t.transpose(x!, 0, 1);
        expect(apply(strided, ...vectors).toFlatArray()).toEqual(
          apply(t.contiguous(strided), ...vectors).toFlatArray(),
        );
      });
    });

    it('names shapes and dtypes that do not fit', () => {
      t.scope(() => {
        const [x, ...vectors] = inputsFor([4, 6], 'float32');
        const short = sample([5], {}, open());
        expect(() => apply(x!, short, ...vectors.slice(1))).toThrow(`${name}: weight [5] must be a vector`);
        expect(() => apply(t.cast(x!, 'int32'), ...vectors)).toThrow(`${name}: x must be floating-point`);
      });
    });
  });

  it('layerNorm keeps its digits with a mean far from 0', () => {
    t.scope(() => {
      const values = [1000, 1000.5, 1001, 1001.5];
      const x = t.tensor(values, { device: open() });
      const y = layerNorm(x, t.ones([4], { device: open() }), t.zeros([4], { device: open() }), 0);
      const exact = values.map((value) => (value - 1000.75) / Math.sqrt(0.3125));
      // A rounding each of the distance, the variance, its root, the quotient.
      y.toFlatArray().forEach((value, i) =>
        expect(Math.abs(value / exact[i]! - 1)).toBeLessThan(4 * 2 ** -24),
      );
    });
  });

  it('layerNorm of a variance beyond float32 is NaN', () => {
    t.scope(() => {
      const [weight, bias] = [t.ones([2], { device: open() }), t.full([2], 5, { device: open() })];
      const y = layerNorm(t.tensor([[-1, 3.4e38], [-1, 1]], { device: open() }), weight, bias, 0); // prettier-ignore
      expect(y.toFlatArray()).toEqual([NaN, NaN, 4, 6]);
    });
  });
}
