import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  type Tensor,
  addInPlace,
  applyOne,
  autocast,
  cast,
  compile,
  copyInPlace,
  fillInPlace,
  full,
  mul,
  noGrad,
  observeOps,
  ones,
  scope,
  slice,
  sum,
  tensor,
} from '../../../src/index.ts';
import { CudaGraph } from '@roofline/cuda/parts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../src/testing.ts';
import { halve, lowProduct } from '../lowered-ops.ts';

describe.skipIf(hostCompilerVersion() === null)('copies of parameters that executables keep', () => {
  const device = openEmulatedDevice();
  const launched = vi.spyOn(CudaGraph.prototype, 'launch');
  afterEach(() => launched.mockClear());

  const parameter = (values: number[]) => tensor(values, { device, requiresGrad: true });
  const product = (x: Tensor, weight: Tensor) => applyOne(lowProduct, [x, weight], undefined);
  const evaluation = (...weights: Tensor[]) =>
    compile((x: Tensor) =>
      noGrad(() =>
        scope(() => autocast('bfloat16', () => sum(weights.reduce((y, weight) => product(y, weight), x)))),
      ),
    );
  /** A step that casts `weight`, multiplies by it and then writes it, and returns the result of a final `finish`. */
  const halving = (weight: Tensor, finish: (y: Tensor) => Tensor) =>
    compile((x: Tensor) =>
      noGrad(() =>
        scope(() => {
          const y = autocast('bfloat16', () => product(x, weight));
          applyOne(halve, [weight], undefined);
          return finish(y);
        }),
      ),
    );
  const launchesOf = (run: () => unknown) => {
    launched.mockClear();
    run();
    return launched.mock.calls.length;
  };

  it('are made by a graph of their own, when a parameter has been written', () => {
    const [first, second] = [parameter([1, 2]), parameter([3, 4])];
    const f = evaluation(first, second);
    const x = ones([2], { device });
    const run = () => f(x).item();
    expect([run, run, run].map(launchesOf)).toEqual([0, 2, 1]);
    noGrad(() => copyInPlace(slice(second.detach(), 0, 1, 2), tensor([6], { device })));
    expect([run, run].map(launchesOf)).toEqual([2, 1]);
    expect(run()).toBe(15);
    // Observers of replays are notified of that graph, too.
    const seen: string[][] = [];
    const stopReplays = observeOps({
      beforeReplay: ({ calls }) => seen.push(calls.map(({ op }) => op.name)),
    });
    noGrad(() => copyInPlace(second, tensor([3, 6], { device })));
    expect([run, run].map(launchesOf)).toEqual([2, 1]);
    stopReplays();
    expect(seen[0]).toEqual(['cast', 'cast']);
    expect(seen.map((calls) => calls.includes('sum'))).toEqual([false, true, true]);
    // A run that is observed op by op runs so, and leaves them as they are.
    const stop = observeOps({ before: () => {} });
    expect(launchesOf(run)).toBe(0);
    stop();
    expect(launchesOf(run)).toBe(1);
    expect(f.explain()).toMatchObject([{ carriedCasts: 2, carriedBytes: 2 * 2 * 6, bytesInRegisters: 12 }]);
    f.dispose();
  });

  it('are written with their parameter where its op can, and are then no longer cast', () => {
    const weight = parameter([16, 32]);
    const f = halving(weight, (y) => y);
    const other = evaluation(weight);
    const x = ones([2], { device });
    other(x);
    const results: unknown[] = [];
    const run = () => results.push(f(x).toFlatArray());
    expect([run, run, run].map(launchesOf)).toEqual([0, 2, 1]);
    // The other executable knows what the op has written, too.
    expect(launchesOf(() => expect(other(x).item()).toBe(6))).toBe(1);
    noGrad(() => copyInPlace(weight, mul(weight, -1)));
    expect([run, run].map(launchesOf)).toEqual([2, 1]);
    expect(launchesOf(() => expect(other(x).item()).toBe(-1.5))).toBe(1);
    expect(results).toEqual([[16, 32], [8, 16], [4, 8], [-2, -4], [-1, -2]]); // prettier-ignore
    expect(f.explain()).toMatchObject([{ carriedCasts: 1, carriedBytes: 2 * 4 }]);
    f.dispose();
    other.dispose();
  });

  it('belong to all executables over a parameter', () => {
    const weight = parameter([1, 2]);
    const [f, g] = [evaluation(weight), evaluation(weight)];
    const x = ones([2], { device });
    for (const h of [f, g]) h(x);
    expect([f, g, f, g].map((h) => launchesOf(() => h(x)))).toEqual([2, 1, 1, 1]);
    noGrad(() => copyInPlace(weight, tensor([5, 6], { device })));
    expect([g, f].map((h) => launchesOf(() => h(x)))).toEqual([2, 1]);
    f.dispose();
    expect(g(x).item()).toBe(11);
    g.dispose();
    const again = evaluation(weight);
    expect([again, again, again].map((h) => launchesOf(() => h(x)))).toEqual([0, 2, 1]);
    expect(again(x).item()).toBe(11);
    again.dispose();
  });

  it('of one slice of a flat buffer stay when another is written', () => {
    const flat = tensor([1, 2, 3, 4, 5], { device });
    const [left, right] = [slice(flat, 0, 0, 2), slice(flat, 0, 3, 5)].map((x) => x.requiresGrad_()) as [
      Tensor,
      Tensor,
    ];
    const [ofLeft, ofRight] = [evaluation(left), evaluation(right)];
    const x = ones([2], { device });
    for (let i = 0; i < 2; i++) for (const f of [ofLeft, ofRight]) f(x);
    noGrad(() => copyInPlace(right, tensor([7, 8], { device })));
    expect([ofLeft, ofRight].map((f) => launchesOf(() => f(x)))).toEqual([1, 2]);
    expect([ofLeft(x).item(), ofRight(x).item()]).toEqual([3, 15]);
    ofLeft.dispose();
    ofRight.dispose();
  });

  it('are of parameters alone, and of whole ones', () => {
    const [weight, other] = [parameter([1, 2, 3]), tensor([4, 5], { device })];
    const f = compile((x: Tensor) =>
      noGrad(() =>
        scope(() => autocast('bfloat16', () => product(product(x, other), slice(weight, 0, 1, 3)))),
      ),
    );
    const x = ones([2], { device });
    for (let i = 0; i < 3; i++) expect(f(x).toFlatArray()).toEqual([8, 15]);
    expect(f.explain()).toMatchObject([{ carriedCasts: 1, carriedBytes: 3 * 6 }]);
    noGrad(() => copyInPlace(other, mul(other, 2)));
    expect(f(x).toFlatArray()).toEqual([16, 30]);
    f.dispose();
  });

  it('are not what the caller gets, nor what is written after the cast', () => {
    const weight = parameter([1, 2]);
    const f = compile((x: Tensor) =>
      noGrad(() => {
        const lowered = cast(weight, 'bfloat16');
        const changed = cast(weight, 'bfloat16');
        addInPlace(changed, cast(x, 'bfloat16'));
        return [lowered, mul(changed, 2), mul(cast(weight, 'bfloat16'), 4)] as const;
      }),
    );
    const x = ones([2], { device });
    for (let i = 0; i < 3; i++) {
      const results = f(x);
      expect(results.map((y) => y.toFlatArray())).toEqual([
        [1, 2],
        [4, 6],
        [4, 8],
      ]);
      for (const result of results) fillInPlace(result, 0);
    }
    expect(f.explain()).toMatchObject([{ carriedCasts: 1 }]);
    f.dispose();
  });

  it('take the bytes that they need, in one segment, and give them back', () => {
    const size = 700_160;
    const weights = [1, 2, 3].map((value) => full([size], value, { device, requiresGrad: true }));
    const x = ones([size], { device });
    const f = evaluation(...weights);
    f(x).dispose();
    const before = device.memoryStatistics();
    f(x).dispose();
    const { arenaBytes } = f.explain()[0]!;
    const copyBytes = 3 * size * 2;
    const held = device.memoryStatistics();
    expect(held.allocatedBytes - before.allocatedBytes).toBe(arenaBytes);
    expect(arenaBytes).toBeGreaterThanOrEqual(copyBytes);
    f.dispose();
    const after = device.memoryStatistics();
    expect(held.reservedBytes - after.reservedBytes).toBe(arenaBytes);
    expect(after.allocatedBytes).toBe(before.allocatedBytes);
  });

  it('take no more where some are small', () => {
    const sizes = [700_160, 1024, 700_160];
    const weights = sizes.map((size, i) => full([size], i, { device, requiresGrad: true }));
    const f = compile((x: Tensor) =>
      noGrad(() => scope(() => autocast('bfloat16', () => weights.map((weight) => sum(product(x, weight)))))),
    );
    const x = ones([1], { device });
    for (let i = 0; i < 2; i++) for (const y of f(x)) y.dispose();
    const held = device.memoryStatistics();
    const { arenaBytes } = f.explain()[0]!;
    f.dispose();
    expect(held.reservedBytes - device.memoryStatistics().reservedBytes).toBe(arenaBytes);
  });

  it('are cast again after a run that failed once it had written a parameter', () => {
    const weight = parameter([16, 32]);
    const f = halving(weight, (y) => mul(y, 3));
    const x = ones([2], { device });
    for (let i = 0; i < 3; i++) f(x);
    const stop = observeOps({
      before: ({ name }) => {
        if (name === 'mul') throw new Error('stop');
      },
    });
    expect(() => f(x)).toThrow('stop');
    stop();
    expect(weight.toFlatArray()).toEqual([1, 2]);
    expect(f(x).toFlatArray()).toEqual([3, 6]);
    f.dispose();
  });

  it('are cast after a run in which an observer failed before they were', () => {
    const weight = parameter([1, 2]);
    const f = evaluation(weight);
    const x = ones([2], { device });
    for (let i = 0; i < 2; i++) f(x);
    noGrad(() => copyInPlace(weight, tensor([3, 4], { device })));
    const stop = observeOps({
      beforeReplay: () => {
        throw new Error('stop');
      },
    });
    expect(() => f(x)).toThrow('stop');
    stop();
    expect(f(x).item()).toBe(7);
    f.dispose();
  });
});
