import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';
import { askTorch, torchPython } from '../../tensor/torch-results.ts';

// Shapes are [rows, columns], numbers from 0 to 1; `columnwise` works along the first dimension.
const ops: Record<string, (x: Tensor) => Tensor> = {
  sum: (x) => t.sum(x, { dims: -1 }),
  mean: (x) => t.mean(x, { dims: -1 }),
  variance: (x) => t.variance(x, { dims: -1 }),
  std: (x) => t.std(x, { dims: -1 }),
  norm: (x) => t.sqrt(t.sum(t.mul(x, x), { dims: -1 })),
  cumsum: (x) => t.cumsum(x, -1),
  softmax: (x) => t.softmax(x),
  logSoftmax: (x) => t.logSoftmax(x),
  crossEntropy: (x) => t.crossEntropy(x, t.arange(0, x.shape[0]!, 1, { dtype: 'int64' })),
  layerNorm: (x) => t.layerNorm(x, onesFor(x), t.zerosLike(onesFor(x))),
  rmsNorm: (x) => t.rmsNorm(x, onesFor(x)),
  'sum of columns': (x) => t.sum(t.transpose(x), { dims: 0 }),
  'variance of columns': (x) => t.variance(t.contiguous(t.transpose(x)), { dims: 0 }),
};

function onesFor(x: Tensor): Tensor {
  return t.ones([x.shape.at(-1)!], { dtype: x.dtype });
}

const script = `
import json, sys, torch
import torch.nn.functional as F
ops = {
  'sum': lambda x: x.sum(-1), 'mean': lambda x: x.mean(-1), 'variance': lambda x: x.var(-1), 'std': lambda x: x.std(-1),
  'norm': lambda x: x.norm(dim=-1), 'cumsum': lambda x: x.cumsum(-1), 'softmax': lambda x: x.softmax(-1),
  'logSoftmax': lambda x: x.log_softmax(-1), 'crossEntropy': lambda x: F.cross_entropy(x, torch.arange(len(x))),
  'layerNorm': lambda x: F.layer_norm(x, x.shape[-1:]),
  'rmsNorm': lambda x: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5),
  'sum of columns': lambda x: x.T.sum(0), 'variance of columns': lambda x: x.T.contiguous().var(0),
}
generator = torch.Generator().manual_seed(0)
def errors(shape):
    x = torch.rand(shape, generator=generator)
    relative = lambda y, exact: ((y.double() - exact).norm() / exact.norm()).item()
    return {name: relative(op(x), op(x.double())) for name, op in ops.items()}
print(json.dumps([errors(shape) for shape in json.load(sys.stdin)]))
`;

function relativeError(values: readonly number[], exact: readonly number[]): number {
  const norm = (numbers: readonly number[]) => Math.sqrt(numbers.reduce((total, x) => total + x * x, 0));
  return norm(values.map((value, i) => value - exact[i]!)) / norm(exact);
}

describe.skipIf(!torchPython)('long rows of float32, compared to PyTorch', () => {
  // Rows that ONNX Runtime's norms handle as they are, rows in which they lose digits, and a prime number of elements.
  const shapes = [
    [3, 8192],
    [4, 65_536],
    [2, 1_000_003],
  ];
  const torch = torchPython ? (askTorch(script, shapes) as Record<string, number>[]) : [];
  const cases = shapes.flatMap(([rows, columns], i) =>
    Object.keys(ops).map((name) => [name, rows!, columns!, i] as const),
  );

  it.each(cases)(
    '%s of [%i, %i] is at most twice as far from float64, and two roundings',
    (name, rows, columns, i) => {
      const bound = 2 * torch[i]![name]! + 2 * 2 ** -24;
      const compiled = t.compile(ops[name]!);
      t.scope(() => {
        const x = t.uniform([rows, columns], { seed: i });
        const exact = ops[name]!(t.cast(x, 'float64')).toFlatArray();
        for (const run of [ops[name]!, compiled, compiled, compiled])
          expect(relativeError(run(x).toFlatArray(), exact)).toBeLessThanOrEqual(bound);
        expect(compiled.cache.hits).toBeGreaterThan(0);
      });
    },
  );
});

describe('norms of long rows', () => {
  it.each([8192, 8193])('give NaN for a variance beyond float32, of %i elements', (columns) => {
    t.scope(() => {
      const x = t.fromTypedArray(
        Float32Array.from({ length: columns }, (_, i) => (i % 2 ? 1 : -1) * 1e20),
        [columns],
      );
      const y = t.layerNorm(x, onesFor(x), t.zerosLike(x));
      expect(y.toFlatArray().every(Number.isNaN)).toBe(true);
    });
  });

  it.each(['float32', 'bfloat16'] as const)('have the gradients of their parts, in %s', (dtype) => {
    const gradients = (f: (x: Tensor, w: Tensor, b: Tensor) => Tensor) =>
      t.scope(() => {
        const [x, w, b] = [
          t.randn([2, 9000], { seed: 1 }),
          t.randn([9000], { seed: 2 }),
          t.randn([9000], { seed: 3 }),
        ].map((leaf) => t.cast(t.cast(leaf, dtype), 'float64').requiresGrad_()) as [Tensor, Tensor, Tensor];
        const y = f(x, w, b);
        y.backward(t.cast(t.randn([2, 9000], { seed: 4 }), y.dtype));
        return [y, x.grad!, w.grad!, b.grad!].map((each) => each.toFlatArray());
      });
    const unit = dtype === 'bfloat16' ? 2 ** -8 : 2 ** -24;
    const own = gradients((x, w, b) => {
      const [lowX, lowW, lowB] = [x, w, b].map((leaf) => t.cast(leaf, dtype));
      return t.layerNorm(lowX!, lowW!, lowB!);
    });
    const exact = gradients((x, w, b) => {
      const distance = t.sub(x, t.mean(x, { dims: -1, keepDims: true }));
      const variance = t.mean(t.mul(distance, distance), { dims: -1, keepDims: true });
      return t.add(t.mul(t.mul(distance, t.rsqrt(t.add(variance, 1e-5))), w), b);
    });
    own.forEach((values, i) => expect(relativeError(values, exact[i]!)).toBeLessThanOrEqual(4 * unit));
  });
});
