import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';

const calls = 2000;

/** The least host microseconds per call, over rounds of `calls` that the device keeps up with. */
function hostUs(run: () => void): number {
  const device = t.device('cuda');
  let best = Infinity;
  for (let round = 0; round < 10; round++) {
    device.synchronize();
    const start = performance.now();
    for (let i = 0; i < calls; i++) run();
    best = Math.min(best, ((performance.now() - start) * 1000) / calls);
  }
  device.synchronize();
  return best;
}

const device = () => t.device('cuda');
const tensors = () => ({
  x: t.ones([16, 16], { device: device() }),
  y: t.ones([16, 16], { device: device() }),
  row: t.ones([16], { device: device() }),
  low: t.ones([64, 64], { device: device(), dtype: 'bfloat16' }),
});
type Tensors = ReturnType<typeof tensors>;

const cases: readonly (readonly [string, (tensors: Tensors) => void, number])[] = [
  ['add', ({ x, y }) => t.add(x, y).dispose(), 8],
  ['add a number', ({ x }) => t.add(x, 1.5).dispose(), 8],
  ['add in place', ({ x, y }) => t.addInPlace(x, y), 8],
  ['add a row', ({ x, row }) => t.add(x, row).dispose(), 8],
  ['copy transposed', ({ x }) => t.copy(t.transpose(x)).dispose(), 8],
  ['sum of rows', ({ x }) => t.sum(x, { dims: 1 }).dispose(), 8],
  ['softmax', ({ x }) => t.softmax(x, -1).dispose(), 10],
  ['matmul bfloat16', ({ low }) => t.matmul(low, low).dispose(), 15],
];

describe('host time of an eager op', () => {
  it.each(cases)('%s', (name, run, limitUs) => {
    t.noGrad(() =>
      t.scope(() => {
        const inputs = tensors();
        run(inputs);
        const us = hostUs(() => run(inputs));
        console.log(`${name.padEnd(18)} ${us.toFixed(2)} µs`);
        expect(us).toBeLessThanOrEqual(limitUs);
      }),
    );
  });

  it('add, with a tape', () => {
    t.scope(() => {
      const { x, y } = tensors();
      x.requiresGrad_();
      const us = hostUs(() => t.mul(x, y).dispose());
      console.log(`mul with a tape    ${us.toFixed(2)} µs`);
      expect(us).toBeLessThanOrEqual(10);
    });
  });
});
