import { RooflineError, defaultGenerator, device, observeOps } from '@roofline/tensor-core';
import { expect, it } from 'vitest';
import { Embedding, Linear, RMSNorm, TransformerLM, deferWeights } from '../../src/index.ts';

const cpu = device('cpu');
const config = {
  ...{ vocabularySize: 50, contextLength: 8, modelDimension: 32, feedForwardDimension: 64 },
  ...{ layers: 3, heads: 2 },
};

it('builds a model whose weights take no memory, and have the values of its seed once they are used', () => {
  const expected = new TransformerLM(config, { seed: 7 });
  const before = cpu.allocatedBytes;
  let draws = 0;
  const stop = observeOps({ before: ({ name }) => void (draws += Number(name === 'normal_')) });
  const model = deferWeights(() => new TransformerLM(config, { seed: 7 }));
  stop();
  expect(draws).toBe(0);
  const bytes = [...model.parameters()].reduce((sum, { byteLength }) => sum + byteLength, 0);
  expect(cpu.allocatedBytes - before).toBeLessThan(bytes / 100);
  expect([...model.parameters()].every(({ requiresGrad, storage }) => requiresGrad && storage.isAway)).toBe(
    true,
  );
  const values = (it: TransformerLM) => [...it.namedParameters()].map(([name, x]) => [name, x.toFlatArray()]);
  expect(values(model)).toEqual(values(expected));
  expect(cpu.allocatedBytes - before).toBeGreaterThanOrEqual(bytes);
  model.dispose();
  expect(cpu.allocatedBytes).toBe(before);
  expected.dispose();
});

it('leaves the generator where it would be, and ends with what is built', () => {
  const { offset } = defaultGenerator;
  const make = () => [new Linear(3, 4), new Embedding(5, 3), new RMSNorm(3)] as const;
  const plain = make().map(({ weight }) => weight.toFlatArray());
  const after = defaultGenerator.offset;
  defaultGenerator.offset = offset;
  const deferred = deferWeights(make);
  expect(defaultGenerator.offset).toBe(after);
  // Later draws change nothing.
  new Linear(3, 4).dispose();
  expect(deferred.map(({ weight }) => weight.toFlatArray())).toEqual(plain);
  expect(new Linear(2, 2).weight.storage.isAway).toBe(false);
  expect(() => deferWeights(async () => {})).toThrow(RooflineError);
  expect(() =>
    deferWeights(() => {
      throw new Error('half-way');
    }),
  ).toThrow('half-way');
  expect(new Linear(2, 2).weight.storage.isAway).toBe(false);
});
