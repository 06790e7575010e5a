import { describe, expect, it, vi } from 'vitest';
import * as t from '../../../src/index.ts';
import { type Tensor, compile } from '../../../src/index.ts';
import type { CudaDevice } from '../../../src/kernel-api.ts';
import { CudaGraph } from '@roofline/cuda/parts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../src/testing.ts';
import { halve, lowProduct } from '../lowered-ops.ts';

const seeds = [1, 2, 3, 4, 5, 6];

/** The sum of a product with each of these, in bfloat16. */
const evaluation = (...weights: Tensor[]) =>
  compile((x: Tensor) =>
    t.noGrad(() =>
      t.scope(() =>
        t.autocast('bfloat16', () =>
          t.sum(weights.reduce((y, weight) => t.applyOne(lowProduct, [y, weight], undefined), x)),
        ),
      ),
    ),
  );

/** Multiplies by a weight in bfloat16, and then halves the weight, with its copy. */
const halving = (weight: Tensor) =>
  compile((x: Tensor) =>
    t.noGrad(() =>
      t.scope(() => {
        const y = t.autocast('bfloat16', () => t.applyOne(lowProduct, [x, weight], undefined));
        t.applyOne(halve, [weight], undefined);
        return y;
      }),
    ),
  );

describe.skipIf(hostCompilerVersion() === null)('copies of parameters that several functions share', () => {
  const parameter = (on: CudaDevice, ...numbers: number[]) =>
    t.tensor(numbers, { device: on, requiresGrad: true });
  const write = (weight: Tensor, value: number) =>
    t.noGrad(() => t.copyInPlace(weight, t.full([2], value, { device: weight.device })));
  const launched = vi.spyOn(CudaGraph.prototype, 'launch');
  const launchesOf = (run: () => unknown) => {
    launched.mockClear();
    run();
    return launched.mock.calls.length;
  };

  it.each(seeds)('are waited for where another stream makes them, in order %i', (seed) => {
    const on = openEmulatedDevice(2 ** 28, undefined, undefined, seed);
    const weights = [parameter(on, 1, 1), parameter(on, 1, 1)] as const;
    const [f, g] = [evaluation(...weights), evaluation(...weights)];
    const other = on.createStream();
    const x = t.ones([2], { device: on });
    for (let call = 0; call < 2; call++) f(x).dispose();
    other.waitFor(on.recordEvent());
    for (let call = 0; call < 2; call++) on.onStream(other, () => g(x)).dispose();
    const seen = [2, 3, 4, 5].flatMap((value) => {
      on.synchronize();
      for (const weight of weights) write(weight, value);
      const written = on.recordEvent();
      const first = f(x);
      other.waitFor(written);
      return [first, on.onStream(other, () => g(x))];
    });
    on.synchronize();
    expect(seen.map((y) => y.item())).toEqual([8, 8, 18, 18, 32, 32, 50, 50]);
    for (const each of [f, g]) each.dispose();
  });

  it('are waited for once, and on their own stream not at all', () => {
    const on = openEmulatedDevice();
    const weights = [parameter(on, 1, 1), parameter(on, 2, 2), parameter(on, 3, 3)] as const;
    const [f, g, h] = [
      evaluation(weights[0], weights[1]),
      evaluation(weights[0], weights[1]),
      evaluation(...weights),
    ];
    const other = on.createStream();
    const x = t.ones([2], { device: on });
    for (let call = 0; call < 2; call++) {
      f(x).dispose();
      on.onStream(other, () => g(x)).dispose();
    }
    on.onStream(other, () => h(x)).dispose();
    const spies = [on.stream, other].map((stream) => vi.spyOn(stream, 'waitFor'));
    const waitsOf = (run: () => Tensor) => {
      for (const spy of spies) spy.mockClear();
      run().dispose();
      return spies.reduce((sum, { mock }) => sum + mock.calls.length, 0);
    };
    const runs = [
      () => f(x),
      () => f(x),
      () => on.onStream(other, () => g(x)),
      () => on.onStream(other, () => g(x)),
    ];
    const quiet = runs.map(waitsOf);
    write(weights[0], 5);
    expect(runs.map(waitsOf)).toEqual([quiet[0], quiet[1], quiet[2]! + 1, quiet[3]]);
    // Two copies come from another stream, and one is new.
    expect(on.onStream(other, () => h(x).item())).toBe(2 * 5 * 2 * 3);
  });

  it('stay fresh when one that wrote them goes, and when one goes that has not run since', () => {
    const device = openEmulatedDevice();
    const weight = parameter(device, 16, 32);
    const [f, other] = [halving(weight), evaluation(weight)];
    const x = t.ones([2], { device });
    for (const run of [f, other, f, other, f]) run(x).dispose();
    f.dispose();
    expect(launchesOf(() => expect(other(x).item()).toBe(6))).toBe(1);
    const again = halving(weight);
    for (let call = 0; call < 2; call++) again(x).dispose();
    write(weight, 3);
    expect(launchesOf(() => expect(other(x).item()).toBe(6))).toBe(2);
    again.dispose();
    expect(launchesOf(() => expect(other(x).item()).toBe(6))).toBe(1);
    const [early, late] = [evaluation(weight), evaluation(weight)];
    for (const run of [early, late, early, late]) run(x).dispose();
    write(weight, 4);
    late(x).dispose();
    for (const each of [late, early]) each.dispose();
    expect(launchesOf(() => expect(other(x).item()).toBe(8))).toBe(1);
  });

  it('are given back where a function was captured several times', () => {
    const device = openEmulatedDevice();
    const weight = parameter(device, 1, 2);
    const live = () => device.memoryStatistics().liveStorages;
    const before = live();
    const f = compile(
      (x: Tensor) =>
        t.noGrad(() =>
          t.autocast('bfloat16', () => t.scope(() => t.applyOne(lowProduct, [x, weight], undefined))),
        ),
      { autotune: true },
    );
    t.scope(() => {
      const x = t.ones([2], { device });
      for (let call = 0; call < 3; call++) expect(f(x).toFlatArray()).toEqual([1, 2]);
    });
    f.dispose();
    expect(live()).toBe(before);
  });

  it('of several parameters side by side are made again where one has been written', () => {
    const device = openEmulatedDevice();
    const weights = [1, 2].map((value) => t.full([16, 16], value, { device, requiresGrad: true }));
    const f = compile((x: Tensor) =>
      t.noGrad(() =>
        t.scope(() => t.autocast('bfloat16', () => weights.map((weight) => t.mul(t.linear(x, weight), 2)))),
      ),
    );
    const x = t.ones([16, 16], { device });
    const seen = () => f(x).map((y) => y.toFlatArray()[0]);
    for (let call = 0; call < 3; call++) expect(seen()).toEqual([32, 64]);
    weights.forEach((weight, i) => {
      t.noGrad(() => t.copyInPlace(weight, t.full([16, 16], 3 + i, { device })));
      expect(seen()).toEqual(i === 0 ? [96, 64] : [96, 128]);
    });
    const [{ mergedProducts, carriedCasts }] = f.explain() as [t.CompileExplanation];
    expect({ mergedProducts, carriedCasts }).toEqual({ mergedProducts: 1, carriedCasts: 2 });
    f.dispose();
  });
});
