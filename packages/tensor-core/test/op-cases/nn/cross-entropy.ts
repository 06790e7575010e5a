import { expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { DType, Tensor } from '../../../src/index.ts';
import { crossEntropy } from '../../../src/ops/nn/cross-entropy.ts';
import { uniformStream } from '../../../../../tooling/uniform-stream.ts';
import { sample, tensorOf } from '../support/samples.ts';
import {
  type OpenDevice,
  type Reference,
  expectFiniteDifferences,
  expectReference,
  floatingPointDTypes,
  rowsOf,
} from '../support/vector-jacobian.ts';

const ignoreIndex = -100;

function crossEntropyReference(logits: number[], targets: number[]): Reference {
  const columns = logits.length / targets.length;
  const rows = rowsOf(logits, columns).map((row) => {
    const largest = row.reduce((a, b) => Math.max(a, b), -Infinity);
    const logSumExp = largest + Math.log(row.reduce((sum, value) => sum + Math.exp(value - largest), 0));
    return { row, logSumExp };
  });
  const count = targets.filter((target) => target !== ignoreIndex).length;
  const losses = rows.map(({ row, logSumExp }, i) =>
    targets[i] === ignoreIndex ? 0 : logSumExp - row[targets[i]!]!,
  );
  return {
    y: [losses.reduce((a, b) => a + b, 0) / count],
    gradients: ([g]) => [
      rows.flatMap(({ row, logSumExp }, i) =>
        row.map((value, j) =>
          targets[i] === ignoreIndex
            ? 0
            : ((Math.exp(value - logSumExp) - Number(j === targets[i])) * g!) / count,
        ),
      ),
      null,
    ],
  };
}

/** crossEntropy on one device. */
export function describeCrossEntropy(open: OpenDevice, dtypes = floatingPointDTypes): void {
  const targetsFor = (
    rows: number,
    columns: number,
    dtype: DType,
    ignored: readonly number[] = [],
  ): Tensor => {
    const next = uniformStream(8);
    const values = Array.from({ length: rows }, (_, i) =>
      ignored.includes(i) ? ignoreIndex : Math.floor(next() * columns),
    );
    return tensorOf(values, [rows], dtype, open());
  };

  it.each(dtypes.flatMap((dtype) => (['int32', 'int64'] as const).map((index) => [dtype, index] as const)))(
    'agrees with float64 for %s logits and %s targets, and so does its gradient',
    (dtype, index) => {
      for (const [rows, columns] of [
        [1, 2],
        [6, 17],
        [5, 256],
        [3, 10000],
        [2, 50257],
      ] as const) {
        t.scope(() => {
          const logits = sample([rows, columns], { dtype, domain: [-5, 5], seed: 9 }, open());
          const targets = targetsFor(rows, columns, index);
          expect(crossEntropy(logits, targets).dtype).toBe(dtype === 'float64' ? dtype : 'float32');
          expectReference((x, y) => crossEntropy(x!, y!), [logits, targets], crossEntropyReference);
        });
      }
    },
  );

  it('leaves ignored rows out of the mean and gives them no gradient', () => {
    t.scope(() => {
      const logits = sample([7, 12], { seed: 10 }, open());
      const targets = targetsFor(7, 12, 'int64', [0, 3, 6]);
      expectReference((x, y) => crossEntropy(x!, y!), [logits, targets], crossEntropyReference);
      const other = crossEntropy(logits, t.where(t.equal(targets, ignoreIndex), -7, targets), {
        ignoreIndex: -7,
      });
      expect(other.item()).toBe(crossEntropy(logits, targets).item());
    });
  });

  it('has the gradient that finite differences show', () => {
    t.scope(() => {
      const targets = targetsFor(3, 5, 'int64', [1]);
      const logits = sample([3, 5], { dtype: 'float64', seed: 11 }, open());
      expectFiniteDifferences((x) => crossEntropy(x, targets), [logits]);
    });
  });

  it('survives large logits and excluded classes', () => {
    t.scope(() => {
      const logits = tensorOf([1e4, 0, -Infinity, 0, -Infinity, -1e4], [2, 3], 'float32', open());
      const loss = crossEntropy(logits, tensorOf([0, 0], [2], 'int64', open()));
      expect(loss.item()).toBe(0);
    });
  });

  it('names shapes and dtypes that do not fit', () => {
    t.scope(() => {
      const logits = sample([2, 3, 4], {}, open());
      const targets = targetsFor(6, 4, 'int64');
      expect(() => crossEntropy(logits, targets)).toThrow(
        'takes logits [N, V] and targets [N], got [2, 3, 4] and [6]',
      );
      expect(() => crossEntropy(t.view(logits, [6, 4]), t.cast(targets, 'float32'))).toThrow(
        'must be int32 or int64',
      );
      expect(() => crossEntropy(sample([0, 4], {}, open()), targetsFor(0, 4, 'int64'))).toThrow(
        'without elements',
      );
    });
  });

  it.each([-1, 4, 100])('refuses target %i of four classes', (target) => {
    for (const dtype of ['int32', 'int64'] as const) {
      t.scope(() => {
        const logits = sample([3, 4], {}, open()).requiresGrad_();
        const targets = tensorOf([1, target, 2], [3], dtype, open());
        if (logits.device.type === 'cpu') {
          const message = `crossEntropy: target ${target} at position 1 is outside the 4 classes 0..3`;
          expect(() => crossEntropy(logits, targets)).toThrow(t.ShapeError);
          expect(() => crossEntropy(logits, targets)).toThrow(message);
        } else {
          const loss = crossEntropy(logits, targets);
          expect(loss.item()).toBeNaN();
          loss.backward();
          const isNaNs = logits.grad!.toFlatArray().map((value) => Number.isNaN(value));
          expect(isNaNs).toEqual([0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0].map(Boolean));
        }
      });
    }
  });

  it('ignores a class of its own, negative or not', () => {
    t.scope(() => {
      const logits = tensorOf([0, 0, 1, 5, 2, 2], [3, 2], 'float32', open());
      const lossOf = (targets: number[], ignoreIndex: number) => {
        const leaf = logits.detach().requiresGrad_();
        const loss = crossEntropy(leaf, tensorOf(targets, [3], 'int64', open()), { ignoreIndex });
        loss.backward();
        return { loss: loss.item(), rows: rowsOf(leaf.grad!.toFlatArray(), 2).map(([x]) => Number(x === 0)) };
      };
      expect(lossOf([1, 0, 1], 0)).toEqual({ loss: expect.closeTo(Math.LN2, 6), rows: [0, 1, 0] });
      expect(lossOf([0, -1, 1], -1)).toEqual({ loss: expect.closeTo(Math.LN2, 6), rows: [0, 1, 0] });
    });
  });

  // What torch.nn.functional.cross_entropy gives.
  it.each([
    { logits: [[1, NaN]], targets: [0], loss: NaN, gradient: [NaN, NaN] },
    { logits: [[1, Infinity]], targets: [0], loss: NaN, gradient: [NaN, NaN] },
    { logits: [[-Infinity, -Infinity]], targets: [0], loss: NaN, gradient: [NaN, NaN] },
    { logits: [[Infinity, -Infinity]], targets: [0], loss: NaN, gradient: [NaN, NaN] },
    { logits: [[1, -Infinity]], targets: [0], loss: 0, gradient: [0, 0] },
    { logits: [[1, -Infinity]], targets: [1], loss: Infinity, gradient: [1, -1] },
    {
      logits: [
        [1, 2],
        [3, 4],
      ],
      targets: [ignoreIndex, ignoreIndex],
      loss: NaN,
      gradient: [0, 0, 0, 0],
    },
    {
      logits: [
        [1, NaN],
        [3, 3],
      ],
      targets: [ignoreIndex, 1],
      loss: Math.LN2,
      gradient: [NaN, NaN, 0.5, -0.5],
    },
  ])('of $logits against $targets is what PyTorch has', ({ logits, targets, loss, gradient }) => {
    for (const dtype of ['float32', 'float64'] as const) {
      t.scope(() => {
        const x = t.tensor(logits, { dtype, device: open() }).requiresGrad_();
        const y = crossEntropy(x, tensorOf(targets, [targets.length], 'int64', open()));
        y.backward();
        if (Number.isFinite(loss)) expect(y.item()).toBeCloseTo(loss, 6);
        else expect(y.item()).toBe(loss);
        x.grad!.toFlatArray().forEach((value, i) => {
          if (Number.isNaN(gradient[i])) expect(value).toBeNaN();
          else expect(value).toBeCloseTo(gradient[i]!, 6);
        });
      });
    }
  });
}
