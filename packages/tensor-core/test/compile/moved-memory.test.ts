import { expect, it } from 'vitest';
import {
  CompileError,
  type Tensor,
  add,
  compile,
  keep,
  mul,
  scope,
  tensor,
  toDevice,
  zeros,
} from '../../src/index.ts';
import { describeOnDevices } from '../op-cases/support/devices.ts';

// Tensors whose memory is away, and is made anew where it is used, as sharded parameters are.

describeOnDevices((open) => {
  const on = (values: readonly number[]) => toDevice(tensor(values), open());
  const missing = () => {
    throw new Error('nothing brings it back');
  };

  /** A tensor without memory of its own, and what brings the double of `source` there. */
  const lent = (source: Tensor) => {
    const whole = keep(toDevice(zeros([2]), open()));
    whole.storage.letGo(missing);
    const bring = (factor: number) => {
      const made = mul(source, factor);
      whole.storage.moveIn(made.storage);
      made.dispose();
    };
    return { whole, bring };
  };

  it('each replay makes it anew, as often as the function did, and leaves none', () => {
    const source = on([1, 2]);
    const { whole, bring } = lent(source);
    const step = compile((x: Tensor) => {
      bring(2);
      const first = add(whole, x);
      whole.storage.letGo(missing);
      bring(3);
      const second = mul(whole, first);
      whole.storage.letGo(missing);
      return second;
    });
    for (let i = 0; i < 3; i++) {
      expect(scope(() => step(on([i, i])).toArray())).toEqual([3 * (2 + i), 6 * (4 + i)]);
      expect(whole.storage.isAway).toBe(true);
    }
    expect(step.cache).toMatchObject({ misses: 1, hits: 2 });
    const inputs = step.explain()[0]!.table.flatMap((call) => call.inputs);
    const captured = inputs.filter(({ source: kind }) => kind === 'captured');
    expect(new Set(captured.map(({ storage }) => storage)).size).toBe(1);
    step.dispose();
  });

  it('memory that was made outside, or stays behind, is refused', () => {
    const { whole } = lent(on([1, 2]));
    const outside = on([5, 6]);
    const moving = compile((x: Tensor) => {
      whole.storage.moveIn(outside.storage);
      return add(whole, x);
    });
    expect(() => moving(on([1, 1]))).toThrow(CompileError);
    const left = lent(on([1, 2]));
    const leaving = compile((x: Tensor) => {
      left.bring(2);
      const sum = add(left.whole, x);
      return sum;
    });
    expect(() => {
      for (let i = 0; i < 6; i++) {
        scope(() => leaving(on([1, 1])));
        left.whole.storage.letGo(missing);
      }
    }).toThrow('stays behind at every call');
  });
});
