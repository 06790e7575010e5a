import {
  Generator,
  autocast,
  checkGradients,
  compile,
  noGrad,
  randn,
  scope,
  sum,
} from '@roofline/tensor-core';
import { expect, it } from 'vitest';
import { Embedding, Linear } from '../../src/index.ts';

it('adds a bias that begins as zeros, has a gradient, and has a name in the state', () => {
  const layer = new Linear(3, 2, { seed: 1, bias: true });
  const x = randn([4, 3], { seed: 2 });
  expect(layer.bias!.toFlatArray()).toEqual([0, 0]);
  expect(Object.keys(layer.stateDict())).toEqual(['weight', 'bias']);
  scope(() => sum(layer.forward(x)).backward());
  expect(layer.bias!.grad!.toFlatArray()).toEqual([4, 4]);

  const plain = new Linear(3, 2, { seed: 1 });
  expect(plain.bias).toBeNull();
  expect(Object.keys(plain.stateDict())).toEqual(['weight']);
  expect(plain.weight.toFlatArray()).toEqual(layer.weight.toFlatArray());
});

it('has the gradients of finite differences, with respect to its input, weight and bias', () => {
  const layer = new Linear(3, 2, { seed: 1, bias: true, dtype: 'float64' });
  const x = randn([2, 3], { seed: 2, dtype: 'float64', requiresGrad: true });
  checkGradients(() => layer.forward(x), [x, layer.weight, layer.bias!]);
});

it('keeps the low precision of its product under autocast, as PyTorch does', () => {
  const layer = new Linear(3, 2, { seed: 1, bias: true });
  const x = randn([4, 3], { seed: 2 });
  expect(autocast('bfloat16', () => noGrad(() => layer.forward(x))).dtype).toBe('bfloat16');
});

it('is the same compiled', () => {
  const layer = new Linear(3, 2, { seed: 1, bias: true });
  layer.loadStateDict({ weight: layer.weight, bias: randn([2], { seed: 3 }) });
  const x = randn([4, 3], { seed: 2 });
  const compiled = compile((input: typeof x) => layer.forward(input));
  noGrad(() => {
    const eager = layer.forward(x).toFlatArray();
    for (let call = 0; call < 2; call++) {
      compiled(x)
        .toFlatArray()
        .forEach((value, i) => expect(value).toBeCloseTo(eager[i]!, 6));
    }
  });
});

it.each([
  ['Linear', () => new Linear(3, 2, { seed: 1, generator: new Generator(1) })],
  ['Embedding', () => new Embedding(3, 2, { seed: 1, generator: new Generator(1) })],
])('%s refuses a seed next to a generator', (name, make) => {
  expect(make).toThrow(`${name}: takes a seed or a generator, not both.`);
});
