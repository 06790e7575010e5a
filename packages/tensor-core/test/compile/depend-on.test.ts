import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { type Tensor, compile } from '../../src/index.ts';

/** Calls `run` for each of a few calls: the first captures the graph, the others replay it. */
const calls = <T>(run: (call: number) => T): T[] => [0, 1, 2].map(run);

describe('of what dependOn reads', () => {
  it('0 is not -0, and NaN is NaN', () => {
    let factor = NaN;
    const f = compile((x: Tensor) =>
      t.mul(
        x,
        t.dependOn(() => factor),
      ),
    );
    const seen = [NaN, NaN, 0, 0, -0, -0, NaN, 0, 2, 2].map((now) => {
      factor = now;
      return t.div(1, f(t.ones([1]))).item();
    });
    expect(seen).toEqual([NaN, NaN, Infinity, Infinity, -Infinity, -Infinity, NaN, Infinity, 0.5, 0.5]);
    expect(f.cache).toMatchObject({ misses: 4, hits: 6 });
  });

  it('each of several values counts, though they are alike at first', () => {
    const factors = [2, 2];
    const f = compile((x: Tensor) =>
      factors.reduce(
        (y, _, i) =>
          t.mul(
            y,
            t.dependOn(() => factors[i]!),
          ),
        x,
      ),
    );
    const run = () => f(t.ones([1])).item();
    expect(calls(run)).toEqual([4, 4, 4]);
    factors[1] = 5;
    expect(calls(run)).toEqual([10, 10, 10]);
    expect(f.cache.misses).toBe(2);
  });

  it('no run is repeated that changes what it depends on', () => {
    let count = 2;
    const read = () => count;
    const f = compile((x: Tensor) => {
      const y = t.mul(x, t.dependOn(read));
      count = 3;
      return t.mul(y, t.dependOn(read));
    });
    for (let call = 0; call < 3; call++) {
      count = 2;
      expect([f(t.ones([1])).item(), count]).toEqual([6, 3]);
    }
  });
});
