import { describe, expect, it } from 'vitest';
import {
  type Tensor,
  addInPlace,
  backward,
  compile,
  copy,
  mul,
  onBackwardFinished,
  scope,
  sum,
  tensor,
} from '../../src/index.ts';

/** A compiled step that leaves the gradient of `weight`, x, and how often its JavaScript has run. */
function stepOf(weight: Tensor) {
  const step = compile((x: Tensor) => {
    weight.grad?.dispose();
    weight.grad = null;
    backward(sum(mul(weight, x)));
  });
  const run = (values: number[]) => {
    scope(() => step(tensor(values)));
    return weight.grad!.toArray();
  };
  return { run, step };
}

/** Adds the gradient to itself: the hook of a gradient sees it whole. */
const doubles = (parameter: Tensor) =>
  addInPlace(
    parameter.grad!,
    scope(() => copy(parameter.grad!)),
  );

describe('hooks that only run ops', () => {
  it('are compiled with the backward pass: replays repeat their ops and do not call them', () => {
    const weight = tensor([1, 2]).requiresGrad_();
    let calls = 0;
    const count = (parameter: Tensor) => (calls++, doubles(parameter));
    weight.onGradientAccumulated(count, { compiles: true });
    const { run, step } = stepOf(weight);
    for (let i = 0; i < 4; i++) expect(run([i, 1])).toEqual([2 * i, 2]);
    // The first call finds no gradient, and the second is another program.
    expect([calls, step.cache.hits]).toEqual([2, 2]);
  });

  it('that go, or that others replace, make another program', () => {
    const weight = tensor([1, 2]).requiresGrad_();
    const { run, step } = stepOf(weight);
    for (let i = 0; i < 2; i++) expect(run([3, 4])).toEqual([3, 4]);
    const remove = weight.onGradientAccumulated(doubles, { compiles: true });
    for (let i = 0; i < 2; i++) expect(run([3, 4])).toEqual([6, 8]);
    remove();
    const removeOther = weight.onGradientAccumulated((x) => (doubles(x), doubles(x)), { compiles: true });
    for (let i = 0; i < 2; i++) expect(run([3, 4])).toEqual([12, 16]);
    removeOther();
    for (let i = 0; i < 2; i++) expect(run([3, 4])).toEqual([3, 4]);
    expect([step.cache.hits, step.cache.misses]).toEqual([4, 4]);
  });

  it('of a pass that has ended, set during it', () => {
    const weight = tensor([1, 2]).requiresGrad_();
    weight.onGradientAccumulated(
      () => {
        const stop = onBackwardFinished(() => (stop(), doubles(weight)), undefined, { compiles: true });
      },
      { compiles: true },
    );
    const { run, step } = stepOf(weight);
    for (let i = 0; i < 3; i++) expect(run([i, 1])).toEqual([2 * i, 2]);
    expect(step.cache.hits).toBe(1);
  });

  it.each([[{}], [{ compiles: false }]])('and no others, such as those of %j', (options) => {
    const weight = tensor([1, 2]).requiresGrad_();
    const remove = weight.onGradientAccumulated(doubles, options);
    const { run } = stepOf(weight);
    expect(() => run([1, 1])).toThrow('a hook runs when a gradient has come');
    remove();
    weight.onGradientAccumulated(doubles, { compiles: true });
    const stop = onBackwardFinished(() => {}, undefined, options);
    expect(() => run([1, 1])).toThrow('a hook runs when a backward pass has ended');
    stop();
    expect(run([1, 1])).toEqual([2, 2]);
  });

  it('say so by an option', () => {
    const weight = tensor([1]).requiresGrad_();
    expect(() => weight.onGradientAccumulated(doubles, { compile: true } as never)).toThrow('compile');
    expect(() => onBackwardFinished(() => {}, undefined, { compiles: 1 } as never)).toThrow('compiles');
  });
});
