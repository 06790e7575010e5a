import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import type { AutocastDType, DType, Tensor } from '../../src/index.ts';
import { sample } from './support/samples.ts';
import type { OpenDevice } from './support/vector-jacobian.ts';

const lowDTypes = ['float16', 'bfloat16'] as const;

/** What an op gives for float32 and for low operands, as torch.autocast on CUDA does. */
type Expected = 'low' | 'float32' | 'same';

interface Case {
  readonly name: string;
  readonly fn: (x: Tensor) => Tensor;
  readonly gives: Expected;
}

const vector = (x: Tensor) => t.ones([x.shape.at(-1)!], { device: x.device });
const same = (name: string, fn: Case['fn']): Case => ({ name, fn, gives: 'same' });
const inFloat32 = (name: string, fn: Case['fn']): Case => ({ name, fn, gives: 'float32' });
const inLow = (name: string, fn: Case['fn']): Case => ({ name, fn, gives: 'low' });

// By the lists of "Autocast Op Reference" in PyTorch's documentation; for ops in none of them, the inputs decide.
const cases: Case[] = [
  inLow('einsum of a product', (x) => t.einsum('ij,jk->ik', x, x)),
  inLow('einsum of an outer product', (x) => t.einsum('ij,kj->ijk', x, x)),
  inLow('einsum of a sum', (x) => t.einsum('ij->i', x)),
  inLow('einsum of a transpose', (x) => t.einsum('ij->ji', x)),
  inFloat32('pow by a number', (x) => t.pow(x, 2)),
  inFloat32('pow of a number', (x) => t.pow(2, x)),
  inFloat32('a number divided', (x) => t.div(1, x)),
  inFloat32('cumsum', (x) => t.cumsum(x, 0)),
  inFloat32('sum over a dimension', (x) => t.sum(x, { dims: 0 })),
  inFloat32('concat with float32', (x) => t.concat([x, t.unsqueeze(vector(x), 0)])),
  inFloat32('where beside float32', (x) => t.where(t.greater(x, 1), x, vector(x))),
  inFloat32('maximum with float32', (x) => t.maximum(x, vector(x))),
  inFloat32('clamp by float32', (x) => t.clamp(x, { min: vector(x) })),
  same('div by a number', (x) => t.div(x, 2)),
  same('sub from a number', (x) => t.sub(1, x)),
  same('sqrt', (x) => t.sqrt(x)),
  same('sin', (x) => t.sin(x)),
  same('tanh', (x) => t.tanh(x)),
  same('sigmoid', (x) => t.sigmoid(x)),
  same('silu', (x) => t.silu(x)),
  same('gelu', (x) => t.gelu(x)),
  same('geluTanh', (x) => t.gelu(x, { approximate: 'tanh' })),
  same('abs', (x) => t.abs(x)),
  same('sign', (x) => t.sign(x)),
  same('clamp', (x) => t.clamp(x, { min: 1, max: 1.5 })),
  same('max', (x) => t.max(x, { dims: 0 })),
  same('min', (x) => t.min(x, { dims: 0 })),
  same('var', (x) => t.variance(x, { dims: 0 })),
  same('std', (x) => t.std(x, { dims: 0 })),
  same('dropout', (x) => t.dropout(x, { p: 0.5, training: true, generator: new t.Generator(1) })),
  same('topk', (x) => t.topk(x, 2).values),
  same('gather', (x) => t.gather(x, 0, t.zeros([1, 4], { dtype: 'int64', device: x.device }))),
  same('embedding', (x) => t.embedding(x, t.zeros([2], { dtype: 'int64', device: x.device }))),
  same('concat', (x) => t.concat([x, x])),
  same('stack', (x) => t.stack([x, x])),
  same('where', (x) => t.where(t.greater(x, 1), x, 0)),
  same('tril', (x) => t.tril(x)),
  same('rope', (x) =>
    t.rope(x, ...([0, 1].map(() => t.ones([4, 2], { device: x.device })) as [Tensor, Tensor])),
  ),
  { name: 'matmul', fn: (x) => t.matmul(x, t.transpose(x)), gives: 'low' },
  { name: 'linear', fn: (x) => t.linear(x, t.ones([2, x.shape[1]!], { device: x.device })), gives: 'low' },
  { name: 'softmax', fn: (x) => t.softmax(x), gives: 'float32' },
  { name: 'softmax of a dtype', fn: (x) => t.softmax(x, -1, { dtype: x.dtype }), gives: 'same' },
  { name: 'logSoftmax', fn: (x) => t.logSoftmax(x), gives: 'float32' },
  { name: 'layerNorm', fn: (x) => t.layerNorm(x, vector(x), vector(x)), gives: 'float32' },
  { name: 'rmsNorm', fn: (x) => t.rmsNorm(x, vector(x)), gives: 'same' },
  { name: 'exp', fn: (x) => t.exp(x), gives: 'float32' },
  { name: 'log', fn: (x) => t.log(x), gives: 'float32' },
  { name: 'pow', fn: (x) => t.pow(x, x), gives: 'float32' },
  { name: 'rsqrt', fn: (x) => t.rsqrt(x), gives: 'float32' },
  { name: 'sum', fn: (x) => t.sum(x), gives: 'float32' },
  { name: 'mean', fn: (x) => t.mean(x), gives: 'float32' },
  { name: 'relu', fn: (x) => t.relu(x), gives: 'same' },
  { name: 'add', fn: (x) => t.add(x, x), gives: 'same' },
  { name: 'add to float32', fn: (x) => t.add(x, vector(x)), gives: 'float32' },
  { name: 'swiglu', fn: (x) => t.swiglu(x, x), gives: 'same' },
  { name: 'causalMask', fn: (x) => t.causalMask(x), gives: 'same' },
  {
    name: 'crossEntropy',
    fn: (x) => t.crossEntropy(x, t.zeros([x.shape[0]!], { dtype: 'int64', device: x.device })),
    gives: 'float32',
  },
];

/** Runs `fn`, and counts the calls of `op` in it. */
function countCalls(op: string, fn: () => void): number {
  let calls = 0;
  const stop = t.observeOps({ before: ({ name }) => void (calls += Number(name === op)) });
  try {
    fn();
  } finally {
    stop();
  }
  return calls;
}

const rounded = (values: readonly number[], dtype: DType) =>
  values.map((value) => t.fromBits16(dtype, t.toBits16(dtype, value)));

/** autocast on one device. */
export function describeAutocast(open: OpenDevice): void {
  const make = (shape: readonly number[], seed: number, dtype: DType = 'float32') =>
    sample(shape, { dtype, domain: [0.5, 2], seed }, open());
  const heldBytes = () => open().memoryStatistics().allocatedBytes;

  describe.each(lowDTypes)('to %s', (low) => {
    it.each(cases)('$name gives $gives', ({ fn, gives }) => {
      for (const dtype of ['float32', low] as const) {
        const expected = { low, float32: 'float32', same: dtype }[gives];
        t.scope(() => expect(t.autocast(low, () => fn(make([4, 4], 1, dtype))).dtype).toBe(expected));
      }
    });

    it('leaves what is not floating point alone', () => {
      t.scope(() => {
        const x = make([4, 4], 1);
        t.autocast(low, () => {
          expect(t.argmax(x).dtype).toBe('int64');
          expect(t.topk(x, 2).indices.dtype).toBe('int64');
          for (const y of [t.any(x), t.all(x), t.greater(x, 1)]) expect(y.dtype).toBe('bool');
          expect(t.einsum('ij->ji', t.cast(x, 'int64')).dtype).toBe('int64');
        });
      });
    });

    it('leaves float64 and integers alone', () => {
      t.scope(() => {
        const [wide, ids] = [make([3, 3], 1, 'float64'), t.ones([3, 3], { dtype: 'int64', device: open() })];
        t.autocast(low, () => {
          expect(t.matmul(wide, wide).dtype).toBe('float64');
          expect(t.sum(ids).dtype).toBe('int64');
          expect(t.pow(wide, 2).dtype).toBe('float64');
          expect(t.pow(ids, 2).dtype).toBe('int64');
          expect(t.einsum('ij->i', wide).dtype).toBe('float64');
        });
      });
    });

    it('multiplies rounded operands, and gives float32 gradients', () => {
      t.scope(() => {
        const [x, weight] = [make([5, 8], 1), make([4, 8], 2).requiresGrad_()];
        const y = t.autocast(low, () => t.linear(x, weight));
        y.backward(t.onesLike(y));
        const [a, w] = [x, weight].map((tensor) => rounded(tensor.toFlatArray(), low));
        const exact = Array.from({ length: 20 }, (_, i) =>
          w!
            .slice((i % 4) * 8, (i % 4) * 8 + 8)
            .reduce((sum, v, k) => sum + v * a![8 * Math.floor(i / 4) + k]!, 0),
        );
        const ulp = low === 'float16' ? 2 ** -11 : 2 ** -8;
        y.toFlatArray().forEach((value, i) =>
          expect(Math.abs(value / exact[i]! - 1)).toBeLessThanOrEqual(ulp),
        );
        expect(weight.grad!.dtype).toBe('float32');
        // The sums of a product are returned unrounded.
        const columns = Array.from({ length: 8 }, (_, k) =>
          [0, 1, 2, 3, 4].reduce((s, i) => s + a![8 * i + k]!, 0),
        );
        weight.grad!.toFlatArray().forEach((value, i) => expect(value).toBeCloseTo(columns[i % 8]!, 5));
      });
    });
  });

  describe('the casts of a parameter', () => {
    const withWeight = (fn: (x: Tensor, weight: Tensor) => void) =>
      t.scope(() => fn(make([4, 8], 1, 'bfloat16'), make([8, 8], 2).requiresGrad_()));
    const twice = (x: Tensor, weight: Tensor) => t.scope(() => t.sum(t.linear(t.linear(x, weight), weight)));

    it('are made once per region, as stored or transposed, and again in the next one', () => {
      withWeight((x, weight) => {
        const run = (dtype: AutocastDType) =>
          t.autocast(dtype, () => void (twice(x, weight), t.matmul(x, weight)));
        // One of the weight, and of each sum.
        expect(countCalls('cast', () => run('bfloat16'))).toBe(2);
        expect(countCalls('cast', () => run('bfloat16'))).toBe(2);
      });
    });

    it('live as long as the outermost region', () => {
      withWeight((x, weight) => {
        const casts = countCalls('cast', () =>
          t.autocast('bfloat16', () => {
            t.autocast('bfloat16', () => t.linear(x, weight));
            t.withoutAutocast(() => expect(t.matmul(weight, weight).dtype).toBe('float32'));
            t.autocast('bfloat16', () => t.linear(x, weight));
          }),
        );
        expect(casts).toBe(1);
      });
    });

    it('follow what is written to it', () => {
      withWeight((x, weight) => {
        t.autocast('bfloat16', () => {
          t.linear(x, weight);
          t.noGrad(() => t.fillInPlace(weight, 0));
          expect(t.linear(x, weight).toFlatArray()).toEqual(new Array(32).fill(0));
        });
      });
    });

    it('are of the dtype of the region that uses them', () => {
      withWeight((_, weight) => {
        const product = (dtype: AutocastDType) => t.autocast(dtype, () => t.matmul(weight, weight));
        const [outer, inner, after] = t.autocast('bfloat16', () => [
          t.matmul(weight, weight),
          product('float16'),
          t.matmul(weight, weight),
        ]);
        expect([outer!.dtype, inner!.dtype, after!.dtype]).toEqual(['bfloat16', 'float16', 'bfloat16']);
        expect(inner!.toArray()).toEqual(product('float16').toArray());
        expect(outer!.toArray()).toEqual(product('bfloat16').toArray());
        expect(after!.toArray()).toEqual(outer!.toArray());
      });
    });

    // A view is used first in a scope that ends long before the region, which has cast the whole parameter.
    const views: Record<string, (weight: Tensor) => Tensor> = {
      whole: (weight) => weight,
      transposed: (weight) => t.transpose(weight),
      'some rows': (weight) => t.slice(weight, 0, 1, 3),
      'some columns': (weight) => t.slice(weight, 1, 1, 3),
      'every other column': (weight) => t.slice(weight, 1, 0, 4, 2),
    };

    it.each(Object.keys(views))(
      'are laid out like the parameter in a flat buffer, used first %s',
      (first) => {
        t.scope(() => {
          const device = open();
          const flat = t.arange(0, 40, 1, { dtype: 'float32', device });
          const weights = [8, 24].map((start) =>
            t.view(t.slice(flat, 0, start, start + 12), [3, 4]).requiresGrad_(),
          );
          const rowSums = (x: Tensor) => t.matmul(x, t.ones([x.shape[1]!, 1], { device }));
          t.autocast('bfloat16', () => {
            for (const view of [views[first]!, ...Object.values(views)]) {
              for (const weight of weights) {
                t.scope(() => {
                  const part = view(weight);
                  // Sums below 256, which bfloat16 holds.
                  const sums = rowSums(part);
                  expect(sums.dtype).toBe('bfloat16');
                  expect(sums.toArray()).toEqual(t.withoutAutocast(() => rowSums(part)).toArray());
                });
              }
            }
          });
        });
      },
    );

    it('are freed with the region, or with the backward pass that needs them', () => {
      withWeight((x, weight) => {
        const before = heldBytes();
        t.noGrad(() => t.scope(() => void t.autocast('bfloat16', () => twice(x, weight))));
        expect(heldBytes()).toBe(before);
        const loss = t.autocast('bfloat16', () => twice(x, weight));
        expect(heldBytes()).toBeGreaterThan(before + 64 * 2);
        const casts = countCalls('cast', () => t.backward(loss));
        // Of the gradient of the sum, to its input's dtype: no weight is cast again.
        expect(casts).toBeLessThanOrEqual(1);
        weight.grad!.dispose();
        weight.grad = null;
        loss.dispose();
        expect(heldBytes()).toBe(before);
      });
    });
  });

  it('does not extend into the backward pass', () => {
    t.scope(() => {
      const gradients = [0, 1].map((inside) => {
        const weight = make([8, 8], 3).requiresGrad_();
        const x = make([4, 8], 4);
        const forward = () => t.mean(t.softmax(t.linear(t.exp(t.linear(x, weight)), weight)));
        if (inside) t.autocast('bfloat16', () => t.backward(forward()));
        else t.backward(t.autocast('bfloat16', forward));
        expect(weight.grad!.dtype).toBe('float32');
        return weight.grad!.toFlatArray();
      });
      expect(gradients[0]).toEqual(gradients[1]);
    });
  });

  it('ends with its function, also where that throws', () => {
    expect(() =>
      t.autocast('float16', () => t.scope(() => t.matmul(make([2, 3], 1), make([2, 3], 1)))),
    ).toThrow(t.ShapeError);
    expect(t.autocastDType()).toBeNull();
    expect(() => t.autocast('float32' as 'float16', () => {})).toThrow(
      /float16 or bfloat16, not the text "float32"/,
    );
  });

  it('a norm writes the dtype of the product after it', () => {
    t.scope(() => {
      const x = make([3, 16], 5).requiresGrad_();
      const weight = make([16], 6).requiresGrad_();
      const [y, plain] = [t.rmsNorm(x, weight, 1e-5, { dtype: 'bfloat16' }), t.rmsNorm(x, weight)];
      expect(y.dtype).toBe('bfloat16');
      expect(y.toFlatArray()).toEqual(t.cast(plain, 'bfloat16').toFlatArray());
      t.backward(t.sum(t.cast(y, 'float32')));
      const lowGradients = [x, weight].map((tensor) => tensor.grad!.toFlatArray());
      for (const tensor of [x, weight]) {
        expect(tensor.grad!.dtype).toBe('float32');
        tensor.grad!.dispose();
        tensor.grad = null;
      }
      t.backward(t.sum(plain));
      // A gradient of ones is the same in bfloat16.
      expect([x, weight].map((tensor) => tensor.grad!.toFlatArray())).toEqual(lowGradients);
      expect(() => t.rmsNorm(x, weight, 1e-5, { dtype: 'float64' })).toThrow(t.DTypeError);
    });
  });
}
