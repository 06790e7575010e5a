// Is alone in a process: products run in as many threads as there are cores.
import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { DType, Shape, Tensor } from '../../../src/index.ts';
import { describeOnDevices } from '../../op-cases/support/devices.ts';

describeOnDevices((open) => {
  const of = (values: t.NestedNumbers) => t.tensor(values, { device: open() });
  const zeros = (shape: Shape) => t.zeros(shape, { device: open() });

  it('of two vectors is a scalar, with gradients', () => {
    t.scope(() => {
      const [a, b] = [of([1, 2, 3]).requiresGrad_(), of([4, 5, 6]).requiresGrad_()];
      const y = t.matmul(a, b, { scale: 0.5 });
      expect([y.shape, y.item()]).toEqual([[], 16]);
      y.backward();
      expect([a.grad!.toFlatArray(), b.grad!.toFlatArray()]).toEqual([
        [2, 2.5, 3],
        [0.5, 1, 1.5],
      ]);
    });
  });

  it('is zero where sums have no terms, also of a batch', () => {
    t.scope(() => {
      t.full([12], 7, { device: open() }).dispose();
      const y = t.matmul(zeros([1, 0]), zeros([3, 4, 0, 1]));
      expect([y.shape, y.toFlatArray()]).toEqual([[3, 4, 1, 1], new Array(12).fill(0)]);
      expect(t.matmul(zeros([2, 0]), zeros([0, 1])).toFlatArray()).toEqual([0, 0]);
    });
  });

  it('of a vector and a matrix, on either side and batched', () => {
    t.scope(() => {
      const m = of([
        [1, 2],
        [3, 4],
      ]);
      const v = of([1, 10]);
      const batch = t.stack([m, t.mul(m, 2), t.mul(m, 3)]);
      const cases: [Tensor, Shape, number[]][] = [
        [t.matmul(v, m), [2], [31, 42]],
        [t.matmul(m, v), [2], [21, 43]],
        [t.matmul(v, batch), [3, 2], [31, 42, 62, 84, 93, 126]],
        [t.matmul(batch, v), [3, 2], [21, 43, 42, 86, 63, 129]],
      ];
      for (const [y, shape, values] of cases) expect([y.shape, y.toFlatArray()]).toEqual([shape, values]);
    });
  });

  it('reads operands that repeat', () => {
    t.scope(() => {
      const m = of([
        [1, 2],
        [3, 4],
      ]);
      expect(t.matmul(t.expand(of([[1, 10]]), [3, 2]), m).toFlatArray()).toEqual([31, 42, 31, 42, 31, 42]);
      expect(t.matmul(t.expand(of([[1], [10]]), [2, 2]), m).toFlatArray()).toEqual([4, 6, 40, 60]);
      expect(t.matmul(m, t.expand(of([[1, 10]]), [2, 2])).toFlatArray()).toEqual([3, 30, 7, 70]);
      expect(t.matmul(m, t.expand(of([[1], [10]]), [2, 3])).toFlatArray()).toEqual([21, 21, 21, 43, 43, 43]);
      expect(t.matmul(t.expand(of([[2]]), [2, 2]), m).toFlatArray()).toEqual([8, 12, 8, 12]);
      // Overlapping windows: rows of two elements, one apart.
      const windows = t.expand(t.reshape(m, [1, 2, 2]), [3, 2, 2]);
      expect(t.matmul(windows, windows).toFlatArray()).toEqual([7, 10, 15, 22, 7, 10, 15, 22, 7, 10, 15, 22]);
    });
  });

  it('broadcasts batches, repeated along one of two dimensions', () => {
    t.scope(() => {
      const a = t.reshape(t.arange(0, 12, 1, { device: open(), dtype: 'float32' }), [2, 1, 2, 3]);
      const b = t.reshape(t.arange(0, 18, 1, { device: open(), dtype: 'float32' }), [3, 3, 2]);
      const y = t.matmul(a, b);
      expect(y.shape).toEqual([2, 3, 2, 2]);
      for (let i = 0; i < 2; i++) {
        for (let j = 0; j < 3; j++) {
          const one = t.matmul(t.select(t.select(a, 0, i), 0, 0), t.select(b, 0, j));
          expect(t.select(t.select(y, 0, i), 0, j).toFlatArray()).toEqual(one.toFlatArray());
        }
      }
      const summed = a.detach().requiresGrad_();
      t.sum(t.matmul(summed, b)).backward();
      const columns = t.sum(b, { dims: [0, 2] }).toFlatArray();
      expect(summed.grad!.toFlatArray()).toEqual([...columns, ...columns, ...columns, ...columns]);
    });
  });

  it('joins the rows of a batch before a matrix, whatever their layout, with gradients', () => {
    t.scope(() => {
      const numbers = (shape: Shape) => {
        const size = t.sizeOf(shape);
        return t.reshape(t.sub(t.arange(0, size, 1, { device: open(), dtype: 'float32' }), size / 2), shape);
      };
      const batches: Record<string, Tensor> = {
        dense: numbers([3, 2, 4]),
        'one transposed': t.transpose(numbers([1, 4, 6])),
        'transposed each': t.transpose(numbers([3, 4, 2])),
        'rows and batch swapped': t.transpose(numbers([2, 3, 4]), 0, 1),
        'columns outermost': t.permute(numbers([4, 3, 2]), [1, 2, 0]),
        'rows with gaps': t.slice(numbers([3, 2, 6]), 2, 1, 5),
        'batches with gaps': t.slice(numbers([3, 5, 4]), 1, 0, 2),
        'columns with gaps': t.slice(numbers([3, 2, 8]), 2, 0, 8, 2),
        'repeated batches': t.expand(numbers([1, 2, 4]), [3, 2, 4]),
        'repeated elements': t.expand(numbers([1, 1, 1]), [3, 2, 4]),
        'single rows': numbers([3, 1, 4]),
        'more dimensions': t.transpose(numbers([2, 3, 2, 4]), 0, 2),
      };
      const matrices = [numbers([4, 5]), t.transpose(numbers([5, 4]))];
      const run = (a: Tensor, b: Tensor, product: (a: Tensor, b: Tensor) => Tensor) => {
        const [x, w] = [a.detach().requiresGrad_(), b.detach().requiresGrad_()];
        const y = product(x, w);
        y.backward(numbers(y.shape));
        return [y, x.grad!, w.grad!].map((z) => [z.shape, z.toFlatArray()]);
      };
      for (const [name, a] of Object.entries(batches)) {
        for (const b of matrices) {
          const joined = run(a, b, t.matmul);
          // As many products as there are matrices; exact, because the numbers are small integers.
          const batched = run(a, b, (x, w) =>
            t.matmul(x, t.expand(w, [...x.shape.slice(0, -2), ...w.shape])),
          );
          expect([name, joined]).toEqual([name, batched]);
        }
      }
    });
  });

  it.for<DType>(['float32', 'float64', 'bfloat16'])(
    'linear is the product with the transpose, in %s, with gradients',
    (dtype, { skip }) => {
      skip(open().type === 'cuda' && dtype !== 'float32', 'the emulated GPU multiplies float32 alone');
      t.scope(() => {
        const numbers = (shape: Shape) => {
          const values = Array.from({ length: t.sizeOf(shape) }, (_, i) => ((i * 7) % 5) - 2);
          return t.reshape(t.cast(t.tensor(values, { device: open() }), dtype), shape);
        };
        const inputs = [
          numbers([4, 3]),
          numbers([2, 4, 3]),
          t.transpose(numbers([2, 3, 4]), 1, 2),
          numbers([3]),
        ];
        const weights = [
          numbers([5, 3]),
          t.transpose(numbers([3, 5])),
          t.slice(numbers([5, 6]), 1, 1, 4),
          t.slice(numbers([6, 5]), 0, 0, 6, 2),
          t.expand(numbers([1, 3]), [5, 3]),
          numbers([1, 3]),
        ].map((w) => (w.shape[1] === 3 ? w : t.transpose(w)));
        const run = (a: Tensor, b: Tensor, product: (a: Tensor, b: Tensor) => Tensor) => {
          const [x, w] = [a.detach().requiresGrad_(), b.detach().requiresGrad_()];
          const y = product(x, w);
          y.backward(numbers(y.shape));
          return [y, x.grad!, w.grad!].map((z) => [z.shape, z.toFlatArray()]);
        };
        for (const x of inputs) {
          for (const weight of weights) {
            const wanted = run(x, weight, (a, b) => t.matmul(a, t.transpose(b)));
            expect(run(x, weight, t.linear)).toEqual(wanted);
          }
        }
        expect(() => t.linear(numbers([2, 4]), numbers([5, 3]))).toThrow(
          'linear: [2, 4] with a weight [5, 3]: the last dimensions, 4 and 3, must be equal.',
        );
      });
    },
  );

  it('linear transposes a square weight, before and after a product with it', () => {
    t.scope(() => {
      const [x, w] = [of([[1, 10]]), of([[1, 2], [3, 4]])]; // prettier-ignore
      for (let round = 0; round < 2; round++) {
        expect(t.linear(x, w).toFlatArray()).toEqual([21, 43]);
        expect(t.matmul(x, w).toFlatArray()).toEqual([31, 42]);
      }
    });
  });

  // The product whose rows are those of a transposed operand: rows may differ in magnitude at no cost.
  it.each<[string, t.MatmulOptions | undefined]>([
    ['no options', undefined],
    ['a scale', { scale: 2 }],
    ['a dtype', { dtype: 'float32' }],
  ])('finds the gradient of a second operand in the layout that it has, with %s', (_, options) => {
    const firstOfLastProduct = (b: Tensor): Shape | undefined => {
      const a = zeros([2, 3]);
      const y = t.matmul(a, b.requiresGrad_(), options);
      let last: Shape | undefined;
      const stop = t.observeOps({
        before: ({ name }, inputs) => {
          if (name === 'matmul') last = inputs[0]!.shape;
        },
      });
      y.backward(zeros([2, 4]));
      stop();
      expect(b.grad!.shape).toEqual([3, 4]);
      return last;
    };
    t.scope(() => {
      expect(firstOfLastProduct(zeros([3, 4]))).toEqual([3, 2]);
      expect(firstOfLastProduct(t.transpose(zeros([4, 3])))).toEqual([4, 2]);
    });
  });

  it('of nothing is empty, and a sum of nothing is zero', () => {
    t.scope(() => {
      const cases: [Shape, Shape, Shape][] = [
        [
          [2, 0],
          [0, 3],
          [2, 3],
        ],
        [
          [2, 2, 0],
          [2, 0, 3],
          [2, 2, 3],
        ],
        [
          [2, 2, 0],
          [0, 3],
          [2, 2, 3],
        ],
        [[0], [0], []],
        [
          [0, 2],
          [2, 3],
          [0, 3],
        ],
        [
          [2, 2],
          [2, 0],
          [2, 0],
        ],
        [
          [0, 2, 2],
          [2, 3],
          [0, 2, 3],
        ],
        [[0, 2, 2], [2], [0, 2]],
        [
          [1, 0, 2, 2],
          [3, 1, 2, 2],
          [3, 0, 2, 2],
        ],
      ];
      for (const [a, b, shape] of cases) {
        const y = t.matmul(zeros(a), zeros(b), { scale: 2 });
        expect([y.shape, y.toFlatArray()]).toEqual([shape, new Array(t.sizeOf(shape)).fill(0)]);
      }
      const [x, w] = [zeros([2, 0]).requiresGrad_(), zeros([0, 3]).requiresGrad_()];
      t.sum(t.matmul(x, w)).backward();
      expect([x.grad!.shape, w.grad!.shape]).toEqual([
        [2, 0],
        [0, 3],
      ]);
      const rows = zeros([0, 2]).requiresGrad_();
      const weight = of([
        [1, 2, 3],
        [4, 5, 6],
      ]).requiresGrad_();
      t.sum(t.matmul(rows, weight)).backward();
      expect(weight.grad!.toFlatArray()).toEqual([0, 0, 0, 0, 0, 0]);
    });
  });

  it('distinguishes scales that are not numbers', () => {
    t.scope(() => {
      const one = of([[1]]);
      const scales = [2, Infinity, NaN, 0, -Infinity];
      expect(scales.map((scale) => t.matmul(one, one, { scale }).item())).toEqual(scales);
    });
  });

  it.each<DType>(['int32', 'int64', 'bool'])('of %s is refused', (dtype) => {
    t.scope(() => {
      const x = t.ones([2, 2], { dtype, device: open() });
      expect(() => t.matmul(x, x)).toThrow(`matmul: the first operand must be floating-point, not ${dtype}`);
      expect(() => t.matmul(t.ones([2, 2], { device: open() }), x)).toThrow('the second operand must be');
    });
  });
});

describe('on the CPU', () => {
  it('scales float64 by a float64', () => {
    t.scope(() => {
      const shapes: [Shape, Shape][] = [
        [
          [1, 1],
          [1, 1],
        ],
        [
          [2, 1, 1],
          [2, 1, 1],
        ],
      ];
      for (const [a, b] of shapes) {
        const y = t.matmul(t.ones(a, { dtype: 'float64' }), t.ones(b, { dtype: 'float64' }), { scale: 0.1 });
        expect(y.toFlatArray()).toEqual(new Array(y.size).fill(0.1));
      }
      const x = t.tensor([[3]], { dtype: 'float64', requiresGrad: true });
      t.matmul(x, x.detach(), { scale: 0.1 }).backward();
      expect(x.grad!.item()).toBeCloseTo(0.3, 15);
    });
  });
});

describe('invalid arguments', () => {
  const x = t.tensor([[1, 2]]);
  it.each<[string, () => Tensor, string]>([
    [
      'lengths',
      () => t.matmul(x, x),
      'matmul: [1, 2] · [1, 2]: the last dimension of the first, 2, must equal',
    ],
    ['vectors', () => t.matmul(t.tensor([1, 2]), t.tensor([1, 2, 3])), 'the last dimension of the first, 2'],
    [
      'batches',
      () => t.matmul(t.zeros([2, 1, 2]), t.zeros([3, 2, 1])),
      'matmul: shapes [2] and [3] do not broadcast',
    ],
    ['scalars', () => t.matmul(t.tensor(1), x), 'operands need a dimension; use mul()'],
    ['dtypes', () => t.matmul(x, t.cast(t.transpose(x), 'float64')), 'operands are float32 and float64'],
    ['results', () => t.matmul(x, t.transpose(x), { dtype: 'float64' }), 'not float64'],
    ['unknown results', () => t.matmul(x, x, { dtype: 'half' as never }), 'matmul: there is no dtype half'],
    [
      'options',
      () => t.matmul(x, x, { scal: 2 } as never),
      'there is no option "scal"; did you mean "scale"?',
    ],
    ['scales', () => t.matmul(x, x, { scale: '2' as never }), 'matmul: takes numbers, not the text "2"'],
    ['lists', () => t.matmul([[1]] as never, x), 'matmul: takes tensors, not an array'],
    ['nothing', () => t.matmul(x, undefined as never), 'matmul: takes tensors, not undefined'],
  ])('%s', (_, fn, message) => {
    t.scope(() => expect(fn).toThrow(message));
    t.scope(() => expect(fn).toThrow(t.RooflineError));
  });
});
