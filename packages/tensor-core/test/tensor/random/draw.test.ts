import { afterEach, describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../src/testing.ts';

const values = (x: t.Tensor) => x.toFlatArray() as number[];

/** What `draw` gives in so many eager calls, and what it gives compiled, from one seed. */
function eagerAndCompiled(draw: (generator: t.Generator) => t.Tensor, calls = 3) {
  const [eagerly, generator] = [new t.Generator(7), new t.Generator(7)];
  const eager = Array.from({ length: calls }, () => t.scope(() => values(draw(eagerly))));
  const program = t.compile(() => draw(generator));
  const compiled = Array.from({ length: calls }, () => t.scope(() => values(program())));
  expect(program.cache.hits).toBe(calls - 1);
  program.dispose();
  return { eager, compiled, places: [eagerly.offset, generator.offset] };
}

/** Runs `step`, which adds the gradient of a sum of what it drops to `x.grad`, and compares the two. */
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

describe('random numbers of a compiled function', () => {
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

  it('from outside gives each run its own numbers, eager and compiled in turn', () => {
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

/** Seeds, reads and restores a generator between runs, where the backward pass must drop what its forward pass dropped. */
function describeStates(device: t.Device): void {
  const drawings: [what: string, draw: (generator: t.Generator) => t.Tensor][] = [
    ['randn', (generator) => t.randn([7], { generator, device })],
    ['randint', (generator) => t.randint(0, 1000, [7], { generator, device })],
    ['dropout', (generator) => t.dropout(t.full([64], 1, { device }), { generator })],
  ];

  it.each(drawings)('%s goes on from a seed or a state, eager and compiled alike', (_, draw) => {
    const generator = new t.Generator(7);
    const compiled = t.compile(() => draw(generator));
    for (const run of [() => draw(generator), () => compiled()]) {
      const next = () => t.scope(() => values(run()));
      generator.manualSeed(7);
      const first = [next(), next(), next()];
      expect(new Set(first.map((x) => x.join())).size).toBe(3);
      const state = generator.stateDict();
      const after = [next(), next()];
      expect(values(draw(generator.manualSeed(8)))).not.toEqual(first[0]);
      generator.loadStateDict(state);
      expect([next(), next()]).toEqual(after);
      generator.manualSeed(7);
      expect([next(), next(), next()]).toEqual(first);
      expect(first[0]).toEqual(values(draw(new t.Generator(7))));
    }
    // Another seed needs no other specialization.
    expect(compiled.cache.misses).toBe(1);
    compiled.dispose();
  });

  it('a replay drops in its backward pass what it dropped before, whatever was seeded between runs', () => {
    const generator = new t.Generator(1);
    const x = t.ones([64], { device, requiresGrad: true });
    const step = () => {
      const y = t.dropout(x, { generator });
      t.sum(y).backward();
      return y.detach();
    };
    expectOneMask(x, step, 5, (run) => {
      if (run % 2 === 0) generator.manualSeed(100 + run);
      else generator.loadStateDict({ seed: run, offset: 1000 });
    });
  });

  it('a backward pass repeats its forward pass, though a generator was seeded in between', () => {
    const generator = new t.Generator(1);
    const x = t.ones([64], { device, requiresGrad: true });
    const drop = (input: t.Tensor) => t.dropout(input, { generator });
    for (const [seed, run] of [drop, (input: t.Tensor) => t.checkpoint(drop, input)].entries()) {
      const y = run(x);
      generator.manualSeed(10 + seed);
      t.sum(y).backward();
      expect(values(x.grad!)).toEqual(values(y.detach()));
      expect(generator.stateDict()).toEqual({ seed: 10 + seed, offset: 0 });
      x.grad = null;
    }
  });
}

describe('the state of a generator', () => {
  describe('on the CPU', () => describeStates(t.device('cpu')));
  describe.skipIf(!hostCompilerVersion())('on the emulated GPU (needs g++)', () =>
    describeStates(openEmulatedDevice()),
  );

  it('is neither read nor set in a compiled function, which its replays would not', () => {
    const generator = new t.Generator(3, 5);
    const refused: [RegExp, () => unknown][] = [
      [/a Generator is seeded.*Seed it before each call/, () => generator.manualSeed(1)],
      [
        /the state of a Generator is loaded.*before each call/,
        () => generator.loadStateDict({ seed: 1, offset: 1 }),
      ],
      [/a Generator's offset is read.*outside/, () => generator.stateDict()],
      [/a Generator's offset is read.*outside/, () => generator.offset],
    ];
    for (const [message, use] of refused) {
      const compiled = t.compile((x: t.Tensor) => {
        use();
        return t.dropout(x, { generator });
      });
      expect(() => compiled(t.ones([4]))).toThrow(t.CompileError);
      expect(() => compiled(t.ones([4]))).toThrow(message);
      expect(generator.stateDict()).toEqual({ seed: 3, offset: 5 });
    }
  });

  it('has a specialization for each seed that a compiled function reads', () => {
    const generator = new t.Generator(3);
    const compiled = t.compile((x: t.Tensor) => t.mul(x, generator.seed));
    for (const seed of [3, 4, 3, 4]) {
      generator.manualSeed(seed);
      expect(compiled(t.tensor(1)).item()).toBe(seed);
    }
    expect(compiled.cache.misses).toBe(2);
    compiled.dispose();
  });

  describe('of the default one', () => {
    const before = t.defaultGenerator.stateDict();
    afterEach(() => t.defaultGenerator.loadStateDict(before));

    it('is where numbers come from that are given neither a generator nor a seed', () => {
      const draws = [
        (generator?: t.Generator) => t.uniform([5], { generator }),
        (generator?: t.Generator) => t.dropout(t.ones([64]), { generator }),
      ];
      for (const draw of draws) {
        const expected = values(draw(new t.Generator(11, 2)));
        t.defaultGenerator.loadStateDict({ seed: 11, offset: 2 });
        expect(values(draw())).toEqual(expected);
        expect(t.defaultGenerator.offset).toBeGreaterThan(2);
      }
    });
  });
});

describe('checkpoint', () => {
  it('leaves a generator that its function seeds or makes where the forward pass left it', () => {
    const generator = new t.Generator(5);
    const x = t.ones([64], { requiresGrad: true });
    const functions: ((input: t.Tensor) => t.Tensor)[] = [
      (input) => t.dropout(input, { generator: generator.manualSeed(3) }),
      (input) => {
        const state = generator.stateDict();
        const y = t.dropout(input, { generator });
        generator.loadStateDict({ seed: 9, offset: 4 });
        const z = t.dropout(y, { generator });
        generator.loadStateDict(state);
        return z;
      },
      (input) => {
        generator.offset = 7;
        return t.dropout(input, { generator });
      },
      (input) => t.dropout(input, { generator: new t.Generator(0).manualSeed(6) }),
    ];
    for (const fn of functions) {
      const start = generator.stateDict();
      t.noGrad(() => fn(x));
      const end = generator.stateDict();
      generator.loadStateDict(start);
      const y = t.checkpoint((outer) => t.checkpoint(fn, t.mul(outer, 1)), x);
      expect(generator.stateDict()).toEqual(end);
      t.uniform([9], { generator: generator.manualSeed(50) });
      const state = generator.stateDict();
      t.sum(y).backward();
      expect(values(x.grad!)).toEqual(values(y.detach()));
      expect(generator.stateDict()).toEqual(state);
      x.grad = null;
    }
  });

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
    const generator = new t.Generator(9);
    const noisy = () => t.checkpoint((input) => t.add(input, t.sum(t.uniform([size], { generator }))), x);
    const y = t.sum(noisy());
    size = 8;
    expect(() => y.backward()).toThrow(/checkpoint: the function draws 8 .* it drew 4 of seed 9/);
    expect(() => y.backward()).toThrow(t.AutogradError);
    const z = t.sum(
      t.checkpoint((input) => (size++ === 8 ? t.mul(input, 1) : t.mul(input, t.uniform([4]))), x),
    );
    expect(() => z.backward()).toThrow(/it drew no more/);
  });
});
