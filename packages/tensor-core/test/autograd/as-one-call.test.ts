import { expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import type { RepeatableCall, Tensor } from '../../src/index.ts';
import { asOneCall } from '../../src/kernel-api.ts';

type Layer = (x: Tensor) => Tensor;
type Keeps = (call: RepeatableCall) => boolean;

/** exp(x) by twice as many numbers as it has; the same call gives a sum that nothing reads. */
const doubled: Layer = (x) =>
  asOneCall('doubled', () => [t.div(t.sum(t.stack([t.exp(x), t.exp(x)]), { dims: 0 }), 2), t.sum(x)])[0]!;

/** Its derivative is itself. */
const exponential = t.defineFunction<Tensor>({
  name: 'exponential',
  forward({ save }, x) {
    const y = doubled(x!);
    save(y);
    return y;
  },
  backward: ({ saved }, gradient) => gradient && t.mul(gradient, saved[0]!),
});
const layer: Layer = (x) => t.sin(exponential(t.tanh(x)));

const values = [0.5, -1, 2, 0.25];
/** The gradient of x, and how often exp runs in the backward pass. */
function backward(run: Layer): { readonly gradient: number[]; readonly exps: number } {
  return t.scope(() => {
    const x = t.tensor(values, { requiresGrad: true });
    const y = run(x);
    let exps = 0;
    const stop = t.observeOps({ before: ({ name }) => void (name === 'exp' && exps++) });
    y.backward(t.ones([4]));
    stop();
    return { gradient: x.grad!.toFlatArray(), exps };
  });
}

const kept =
  (name: string): Keeps =>
  (call) =>
    call.op === name;

it.each<[string, Keeps, number]>([
  ['nothing is kept', () => false, 2],
  ['what is kept runs inside', kept('exp'), 2],
  ['another call is kept', kept('tanh'), 2],
  ['it is kept', kept('doubled'), 0],
  ['all is kept', () => true, 0],
])('is one call with all of its results, of which none inside is asked about: %s', (_, keeps, exps) => {
  const asked: [string, number][] = [];
  const follow: Keeps = (call) => {
    asked.push([call.op, call.bytes]);
    return keeps(call);
  };
  const again = backward((x) => t.selectiveCheckpoint(follow, layer, x));
  expect(again).toEqual({ gradient: backward(layer).gradient, exps });
  expect(asked).toEqual([
    ['tanh', 16],
    ['doubled', 16 + 4],
    ['sin', 16],
  ]);
});

it.each([
  ['doubled', 'doubled', 0],
  ['doubled', 'tanh', 2],
  ['tanh', 'doubled', 2],
  ['tanh', 'tanh', 4],
])('is found by a checkpoint, which keeps %s, of one that keeps %s', (outer, inner, exps) => {
  const nested: Layer = (x) =>
    t.selectiveCheckpoint(kept(outer), (y) => t.selectiveCheckpoint(kept(inner), layer, y), x);
  expect(backward(nested)).toEqual({ gradient: backward(layer).gradient, exps });
});

it('runs as it is outside of checkpoints, random numbers and all', () => {
  const generator = new t.Generator(3);
  const drawn = t.scope(() => asOneCall('noise', () => [t.uniform([2], { generator })])[0]!.toFlatArray());
  expect(drawn).toEqual(t.scope(() => t.uniform([2], { seed: 3 }).toFlatArray()));
});

it('refuses random numbers in a checkpoint, kept or not: those that follow would get them', () => {
  const noisy: Layer = (x) => t.mul(asOneCall('noise', () => [t.uniform([4])])[0]!, x);
  for (const keeps of [kept('noise'), () => false])
    expect(() => backward((x) => t.selectiveCheckpoint(keeps, noisy, x))).toThrow(
      'asOneCall: noise draws random numbers, and would not where it is kept; draw them outside',
    );
  // Those that are drawn outside are repeated.
  const given: Layer = (x) => {
    const noise = t.uniform([4], { seed: 2 });
    return t.mul(asOneCall('twice', () => [t.add(noise, noise)])[0]!, t.mul(x, t.uniform([4], { seed: 5 })));
  };
  const plain = backward(given).gradient;
  for (const keeps of [kept('twice'), () => false])
    expect(backward((x) => t.selectiveCheckpoint(keeps, given, x)).gradient).toEqual(plain);
});

it('refuses to be kept where it is written in place later', () => {
  const written: Layer = (x) => {
    const [y] = asOneCall('made', () => [t.noGrad(() => t.exp(x))]);
    t.noGrad(() => t.addInPlace(y!, y!));
    return t.mul(x, y!);
  };
  expect(() => backward((x) => t.selectiveCheckpoint(kept('made'), written, x))).toThrow(
    /a result of made that is kept for the backward pass was written in place/,
  );
});

it('names what it does not take', () => {
  expect(() => asOneCall(null as never, () => [])).toThrow(/asOneCall: the name/);
  expect(() => asOneCall('x', null as never)).toThrow(/asOneCall: what it runs/);
});
