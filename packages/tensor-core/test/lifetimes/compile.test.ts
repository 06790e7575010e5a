import { expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { scaled } from '../compile/lowered-ops.ts';
import { collect } from './collect.ts';

const live = () => t.device('cpu').memoryStatistics().liveStorages;

it('a compiled function that is dropped gives back what its specializations hold', async () => {
  await collect();
  const before = live();
  const use = () => {
    const weight = t.tensor([1, 2]).requiresGrad_();
    const call = t.compile((x: t.Tensor) => {
      t.sum(t.mul(x, weight)).backward();
      return t.mul(x, 2);
    });
    t.scope(() => {
      for (let i = 0; i < 3; i++) call(t.ones([2]));
    });
    return call.cache.hits;
  };
  expect(use()).toBe(1);
  await collect();
  expect(live()).toBe(before);
});

it('a compiled function of an object that is dropped does so too, whatever its specialization reads of the object', async () => {
  class Trainer {
    readonly weight = t.tensor([1, 2]);
    readonly generator = new t.Generator(1);
    factor = 2;
    readonly #readFactor = () => this.factor;
    readonly step = t.compile((x: t.Tensor) => {
      const [y] = t.applyLive(scaled, [x], () => ({ factor: this.factor }));
      return t.dropout(t.mul(t.mul(y!, this.weight), t.dependOn(this.#readFactor)), {
        generator: this.generator,
      });
    });
  }
  await collect();
  const before = live();
  const use = () => {
    const { step } = new Trainer();
    t.scope(() => {
      for (let i = 0; i < 3; i++) step(t.ones([2]));
    });
    return step.cache.hits;
  };
  for (let i = 0; i < 5; i++) expect(use()).toBe(2);
  await collect();
  expect(live()).toBe(before);
});

it('a compiled function keeps what it needs while collections are forced between its calls', async () => {
  const weight = t.randn([3, 3]);
  const call = t.compile((x: t.Tensor) => t.add(t.matmul(x, t.mul(weight, 2)), t.arange(3)));
  const x = t.randn([2, 3]);
  const expected = t.add(t.matmul(x, t.mul(weight, 2)), t.arange(3)).toFlatArray();
  for (let i = 0; i < 4; i++) {
    expect(call(x).toFlatArray()).toEqual(expected);
    await collect();
  }
});
