import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';

const values = (x: t.Tensor) => x.toFlatArray() as number[];

/** What `draw` gives in eager in so many calls, and what it gives compiled, of one seed. */
function eagerAndCompiled(draw: (generator: t.Generator) => t.Tensor, calls = 3) {
  const [eagerly, generator] = [new t.Generator(7), new t.Generator(7)];
  const eager = Array.from({ length: calls }, () => t.scope(() => values(draw(eagerly))));
  const program = t.compile(() => draw(generator));
  const compiled = Array.from({ length: calls }, () => t.scope(() => values(program())));
  expect(program.cache.hits).toBe(calls - 1);
  program.dispose();
  return { eager, compiled, places: [eagerly.offset, generator.offset] };
}

/** Runs `step`, which adds the gradient of a sum of what it drops to `x.grad`, and holds the two to each other. */
function expectOneMask(x: t.Tensor, step: () => t.Tensor, runs: number, afterRun: (run: number) => void) {
  x.grad = t.zerosLike(x);
  const program = t.compile(() => t.scope(step));
  for (let run = 0; run < runs; run++) {
    const before = values(x.grad!);
    const dropped = values(program());
    expect(values(x.grad!).map((value, i) => value - before[i]!)).toEqual(dropped);
    afterRun(run);
  }
  expect(program.cache.hits).toBe(runs - 1);
  program.dispose();
}

describe('random numbers of a compiled program', () => {
  it.each<[what: string, draw: (generator: t.Generator) => t.Tensor]>([
    ['uniform', (generator) => t.uniform([5], { generator })],
    ['randn', (generator) => t.randn([5], { generator })],
    ['truncatedNormal', (generator) => t.truncatedNormal([5], { generator })],
    ['randint', (generator) => t.randint(0, 1000, [5], { generator })],
    ['dropout', (generator) => t.dropout(t.full([64], 1), { generator })],
  ])('by %s are those that eager draws', (_, draw) => {
    const { eager, compiled, places } = eagerAndCompiled(draw);
    expect(compiled).toEqual(eager);
    expect(new Set(eager.map((call) => call.join())).size).toBe(3);
    expect(places[1]).toBe(places[0]);
  });

  it('of a seed are the same in each run', () => {
    const { eager, compiled } = eagerAndCompiled(() => t.uniform([5], { seed: 3 }));
    expect(compiled).toEqual(eager);
    expect(eager[2]).toEqual(eager[0]);
  });

  it('zero the gradient where this run dropped, with other draws between', () => {
    const x = t.ones([64], { requiresGrad: true });
    const generator = new t.Generator(1);
    const step = () => {
      const y = t.dropout(x, { generator });
      const between = t.uniform([3], { generator });
      t.sum(y).backward();
      between.dispose();
      return y.detach();
    };
    expectOneMask(x, step, 4, () => {});
  });
});

describe('a Generator', () => {
  it('is refused inside of a compiled function, where a seed is not', () => {
    const inside = t.compile(() => t.uniform([2], { generator: new t.Generator(1) }));
    expect(() => inside()).toThrow(t.CompileError);
    expect(() => inside()).toThrow(/a Generator is made.*Make it outside, or give the seed alone/);
    const seeded = t.compile(() => t.uniform([2], { seed: 1 }));
    const runs = [1, 2, 3].map(() => values(seeded()));
    expect(runs).toEqual([1, 2, 3].map(() => values(t.uniform([2], { seed: 1 }))));
    expect(seeded.cache.hits).toBe(2);
    seeded.dispose();
  });

  it('of outside gives each run its own numbers, eager and compiled in turn', () => {
    const [ours, theirs] = [new t.Generator(3), new t.Generator(3)];
    const compiled = t.compile((x: t.Tensor) => t.dropout(x, { generator: ours }));
    for (let run = 0; run < 6; run++) {
      const x = t.ones([32]);
      const y = run % 3 === 2 ? t.dropout(x, { generator: ours }) : compiled(x);
      expect(values(y)).toEqual(values(t.dropout(x, { generator: theirs })));
    }
    expect(compiled.cache.hits).toBe(3);
    compiled.dispose();
  });
});

describe('checkpoint', () => {
  it.each([
    ['once', (fn: (x: t.Tensor) => t.Tensor, x: t.Tensor) => t.checkpoint(fn, x)],
    [
      'inside of another',
      (fn: (x: t.Tensor) => t.Tensor, x: t.Tensor) =>
        t.checkpoint((outer) => t.checkpoint(fn, t.mul(outer, 1)), x),
    ],
  ])('%s drops alike in the backward pass, also compiled', (_, run) => {
    const generator = new t.Generator(5);
    const x = t.ones([64], { requiresGrad: true });
    const step = () => {
      const y = run((input) => t.dropout(input, { generator }), x);
      t.sum(y).backward();
      return y.detach();
    };
    expectOneMask(x, step, 3, (i) => expect(generator.offset).toBe(16 * (i + 1)));
  });

  it('repeats what a compiled function has drawn', () => {
    const run = (wrap: (fn: (x: t.Tensor) => t.Tensor) => (x: t.Tensor) => t.Tensor) => {
      const generator = new t.Generator(5);
      const x = t.ones([64], { requiresGrad: true });
      const mask = wrap((ones) => t.dropout(ones, { generator }));
      return [0, 1, 2, 3].map(() => {
        const y = t.checkpoint(
          (input) =>
            t.mul(
              input,
              t.noGrad(() => mask(t.ones([64]))),
            ),
          x,
        );
        t.sum(y).backward();
        const gradient = values(x.grad!);
        x.grad = null;
        expect(gradient).toEqual(values(y.detach()));
        return [gradient, values(mask(t.ones([64]))), generator.offset];
      });
    };
    expect(run((fn) => t.compile(fn))).toEqual(run((fn) => fn));
  });

  it('says so where the function draws otherwise in the backward pass', () => {
    const x = t.ones([4], { requiresGrad: true });
    let size = 4;
    const noisy = () => t.checkpoint((input) => t.add(input, t.sum(t.uniform([size]))), x);
    const y = t.sum(noisy());
    size = 8;
    expect(() => y.backward()).toThrow(/checkpoint: the function draws 8 .* it drew 4 of seed 0/);
    expect(() => y.backward()).toThrow(t.AutogradError);
    const z = t.sum(
      t.checkpoint((input) => (size++ === 8 ? t.mul(input, 1) : t.mul(input, t.uniform([4]))), x),
    );
    expect(() => z.backward()).toThrow(/it drew no more/);
  });
});
