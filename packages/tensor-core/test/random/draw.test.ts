import { describe, expect, it } from 'vitest';
import { recordOps } from '../../../../tooling/replay.ts';
import * as t from '../../src/index.ts';

const values = (x: t.Tensor) => x.toFlatArray() as number[];

/** What `draw` gives in eager in so many calls, and what one call and its replays give, of one seed. */
function eagerAndReplayed(draw: (generator: t.Generator) => t.Tensor, op: string, calls = 3) {
  const eagerly = new t.Generator(7);
  const eager = Array.from({ length: calls }, () => t.scope(() => values(draw(eagerly))));
  const generator = new t.Generator(7);
  const recording = recordOps(() => t.scope(() => void draw(generator)));
  const replayed = [recording.resultOf(op)];
  while (replayed.length < calls) {
    recording.replay();
    replayed.push(recording.resultOf(op));
  }
  recording.dispose();
  return { eager, replayed, places: [eagerly.offset, generator.offset] };
}

describe('random numbers of a replay', () => {
  it.each<[op: string, draw: (generator: t.Generator) => t.Tensor]>([
    ['uniform_', (generator) => t.uniform([5], { generator })],
    ['normal_', (generator) => t.randn([5], { generator })],
    ['normal_', (generator) => t.truncatedNormal([5], { generator })],
    ['integer_', (generator) => t.randint(0, 1000, [5], { generator })],
    ['dropout', (generator) => t.dropout(t.ones([64]), { generator })],
  ])('of %s are those that eager draws', (op, draw) => {
    const { eager, replayed, places } = eagerAndReplayed(draw, op);
    expect(replayed).toEqual(eager);
    expect(new Set(eager.map((call) => call.join())).size).toBe(3);
    expect(places[1]).toBe(places[0]);
  });

  it('of a seed are the same in each', () => {
    const { eager, replayed } = eagerAndReplayed(() => t.uniform([5], { seed: 3 }), 'uniform_');
    expect(replayed).toEqual(eager);
    expect(eager[2]).toEqual(eager[0]);
  });

  it('zero the gradient where this run dropped, with other draws between', () => {
    const x = t.ones([64], { requiresGrad: true });
    const generator = new t.Generator(1);
    x.grad = t.zeros([64]);
    const { grad } = x;
    const recording = recordOps(() =>
      t.scope(() => {
        const y = t.dropout(x, { generator });
        t.uniform([3], { generator });
        t.sum(y).backward();
      }),
    );
    let before = values(grad);
    expect(before).toEqual(recording.resultOf('dropout'));
    for (let run = 0; run < 3; run++) {
      recording.replay();
      const added = values(grad).map((value, i) => value - before[i]!);
      expect(added).toEqual(recording.resultOf('dropout'));
      before = values(grad);
    }
    recording.dispose();
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
  ])('%s drops alike in the backward pass, also in a replay', (_, run) => {
    const generator = new t.Generator(5);
    const x = t.ones([64], { requiresGrad: true });
    x.grad = t.zeros([64]);
    const { grad } = x;
    const recording = recordOps(() =>
      t.scope(() => t.sum(run((input) => t.dropout(input, { generator }), x)).backward()),
    );
    expect(generator.offset).toBe(16);
    let before = values(grad);
    expect(before).toEqual(recording.resultOf('dropout'));
    recording.replay();
    expect(generator.offset).toBe(32);
    const added = values(grad).map((value, i) => value - before[i]!);
    expect(added).toEqual(recording.resultOf('dropout'));
    before = values(grad);
    recording.dispose();
  });

  it('says so where the function draws otherwise in the backward pass', () => {
    const x = t.ones([4], { requiresGrad: true });
    let size = 4;
    const noisy = () => t.checkpoint((input) => t.add(input, t.sum(t.uniform([size]))), x);
    const y = t.sum(noisy());
    size = 8;
    expect(() => y.backward()).toThrow(/checkpoint: the function draws 8 .* it drew 4 of seed 0/);
    expect(() => y.backward()).toThrow(t.AutogradError);
    const z = t.sum(t.checkpoint((input) => (size++ === 8 ? t.mul(input, 1) : t.mul(input, t.uniform([4]))), x));
    expect(() => z.backward()).toThrow(/it drew no more/);
  });
});
