import { expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import type { DType, Tensor } from '../../src/index.ts';
import { crossEntropy } from '../../src/ops/nn/cross-entropy.ts';
import { sample, tensorOf, uniformStream } from './samples.ts';
import {
  type OpenDevice,
  type Reference,
  expectFiniteDifferences,
  expectReference,
  floatingPointDTypes,
  outcomeOf,
  rowsOf,
} from './vector-jacobian.ts';

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

  it('survives large logits and classes that are ruled out', () => {
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

  it.each([-1, 4, 100])('takes no target %i of four classes', (target) => {
    t.scope(() => {
      const logits = sample([2, 4], {}, open());
      const targets = tensorOf([1, target], [2], 'int64', open());
      const outcome = outcomeOf(() => crossEntropy(logits, targets).item());
      expect(outcome).toMatch(logits.device.type === 'cpu' ? /crossEntropy.*ind/ : 'NaN');
    });
  });
}
