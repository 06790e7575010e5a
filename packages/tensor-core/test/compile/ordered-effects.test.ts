import { describe, expect, it } from 'vitest';
import {
  type Device,
  type Tensor,
  add,
  addInPlace,
  apply,
  compile,
  copyInPlace,
  defineOp,
  exp,
  full,
  keep,
  mul,
  noGrad,
  scope,
  sum,
  tensor,
  toDevice,
  transpose,
  zeros,
} from '../../src/index.ts';
import { branchesOf, mayOverlap, spanOf } from '../../src/compile/cuda/branches.ts';
import { partsOf } from '../../src/compile/cuda/arena.ts';
import { takenOver } from '../../src/compile/cuda/in-place.ts';
import { scheduleGraph } from '../../src/compile/cuda/schedule.ts';
import { hoistUpdates } from '../../src/compile/cpu/hoist-updates.ts';
import { scheduleSteps } from '../../src/compile/cpu/schedule.ts';
import { withoutDeadCalls } from '../../src/compile/graph/liveness.ts';
import { orderedCalls } from '../../src/compile/graph/ordered-effects.ts';
import { freeFirst } from '../../src/compile/passes/free-first.ts';
import { areIndependent } from '../../src/compile/passes/operands.ts';
import { withoutRepeatedCalls } from '../../src/compile/passes/without-repeated-calls.ts';
import { openPlanningDevice } from '../../src/testing.ts';
import { describeOnDevices } from '../op-cases/support/devices.ts';
import { NotedOrder, tell, tellOp } from './ordered-effects-op.ts';
import { graphOf, opNames } from './traced-graph.ts';

describeOnDevices((open: () => Device) => {
  const on = (values: readonly number[]) => toDevice(tensor(values), open());
  const isGpu = () => open().type === 'cuda';

  it('calls with effects run in each replay, read or not, equal or not, in their order', () => {
    const order = new NotedOrder();
    const step = compile(function step(x: Tensor) {
      tell(mul(x, 2), order, 'unread');
      const twice = [tell(x, order, 'twice'), tell(x, order, 'twice')];
      return add(mul(twice[0]!, 3), tell(twice[1]!, order, 'last'));
    });
    const texts = ['unread', 'twice', 'twice', 'last'];
    for (let round = 0; round < 3; round++) {
      order.calls.length = 0;
      expect(scope(() => step(on([round, 1])).toArray())).toEqual([4 * round, 4]);
      if (round === 0 || !isGpu()) expect(order.calls).toEqual(texts);
      // Once for all replays; a capture that finds out which kernels are to be compiled is repeated.
      else if (round === 1) expect(order.calls.slice(-4)).toEqual(texts.map((text) => `${text} captured`));
      else expect(order.calls).toEqual([]);
    }
    expect(order.agreed).toEqual(['step: unread, twice, twice, last']);
    expect(order.launched).toEqual(isGpu() ? [...order.agreed, ...order.agreed] : []);
    step.dispose();
    expect(order.drops.size).toBe(0);
  });

  it('who is beside one that takes multiprocessors finds fewer, until it is waited for', () => {
    const found: [string, number][] = [];
    const noteOp = defineOp<{ readonly text: string }>({
      name: 'note',
      autocast: 'none',
      infer: ([x]) => [{ shape: x!.shape, dtype: x!.dtype }],
      cuda: {
        kind: 'custom',
        launch(context, [x], [y], { text }) {
          if (context.isCaptured)
            found.push([text, context.properties.multiprocessors - context.multiprocessors]);
          context.copy(x!, y!);
        },
      },
      cpu: { kind: 'onnx', build: (graph, [x]) => [graph.node('Identity', [x!])] },
    });
    const note = (x: Tensor, text: string) => apply(noteOp, [x], { text })[0]!;
    const order = new NotedOrder();
    order.multiprocessors = 1;
    const step = compile((x: Tensor) => {
      const before = note(x, 'before');
      const told = tell(before, order);
      const beside = note(before, 'beside');
      return [note(add(told, beside), 'after')];
    });
    for (let round = 0; round < 2; round++)
      scope(() => expect(step(on([1, 2]))[0]!.toArray()).toEqual([2, 4]));
    expect(found.slice(-3)).toEqual(
      isGpu()
        ? [
            ['before', 0],
            ['beside', 1],
            ['after', 0],
          ]
        : [],
    );
    step.dispose();
  });

  it('who disagrees before the first replay has none of it, and is asked again', () => {
    const order = new NotedOrder();
    const target = on([0, 0]);
    const step = compile((x: Tensor) => void addInPlace(target, tell(x, order)));
    step(on([1, 2]));
    order.refusal = new Error('others have compiled something else');
    for (let i = 0; i < 2; i++) expect(() => step(on([1, 2]))).toThrow(order.refusal);
    expect(target.toArray()).toEqual([1, 2]);
    order.refusal = null;
    step(on([1, 2]));
    step(on([1, 2]));
    expect(target.toArray()).toEqual([3, 6]);
    expect(order.agreed.length).toBe(3);
    step.dispose();
  });

  it('each order is asked for its own calls, where it has any that are the same for all', () => {
    const [a, b, c] = [new NotedOrder('a'), new NotedOrder('b'), new NotedOrder('c')];
    const step = compile(function two(x: Tensor) {
      return tell(tell(tell(tell(x, b, '1'), a, '2'), c, null), b, '3');
    });
    for (let i = 0; i < 3; i++) expect(scope(() => step(on([i])).toArray())).toEqual([i]);
    expect([a.agreed, b.agreed, c.agreed]).toEqual([['two: 2'], ['two: 1, 3'], []]);
    if (isGpu()) expect([a, b, c].map(({ launched }) => launched.length)).toEqual([2, 2, 2]);
    step.dispose();
  });

  it('a program whose order ends frees its CUDA graph first, and captures another if it can run again', () => {
    const order = new NotedOrder();
    const step = compile((x: Tensor) => tell(mul(x, 2), order));
    for (let i = 0; i < 3; i++) scope(() => step(on([i])).toArray());
    expect(order.drops.size).toBe(isGpu() ? 1 : 0);
    const captures = order.calls.length;
    for (const drop of [...order.drops, ...order.drops]) drop();
    if (isGpu()) {
      order.end = 'the group has ended';
      expect(() => step(on([1]))).toThrow('the group has ended');
      // Nothing has been captured in vain.
      expect(order.calls.length).toBe(captures);
      order.end = '';
      order.loss = new Error('a rank is gone');
      expect(() => step(on([1]))).toThrow(order.loss);
      order.loss = null;
      expect(scope(() => step(on([5])).toArray())).toEqual([10]);
      expect(order.calls.length).toBeGreaterThan(captures);
    }
    step.dispose();
    expect(order.drops.size).toBe(0);
  });

  it('a launch that cannot be has written nothing', () => {
    if (!isGpu()) return;
    const order = new NotedOrder();
    const target = on([1, 2]);
    const step = compile((x: Tensor) => void copyInPlace(target, tell(x, order)));
    for (let i = 0; i < 2; i++) step(on([i, i]));
    order.loss = new Error('a rank is gone');
    expect(() => step(on([7, 7]))).toThrow(order.loss);
    expect(target.toArray()).toEqual([1, 1]);
    step.dispose();
  });

  it('memory on which something is under way is waited for before it is captured, and before each launch', () => {
    const order = new NotedOrder();
    const weight = on([1, 2]);
    const waits: string[] = [];
    const step = compile((x: Tensor) => mul(tell(weight, order), x));
    for (const round of ['first', 'captured', 'replayed', 'again']) {
      weight.storage.noteUnderWay(() => {
        waits.push(round);
        if (isGpu())
          expect(order.calls.filter((call) => call.endsWith('captured')).length === 0).toBe(
            round === 'first' || round === 'captured',
          );
      });
      expect(scope(() => step(on([2, 2])).toArray())).toEqual([2, 4]);
      expect(waits.at(-1)).toBe(round);
    }
    step.dispose();
  });
});

describe('passes', () => {
  const order = new NotedOrder();
  const device = openPlanningDevice();
  const x = keep(full([64, 64], 1, { device }));
  const traced = (fn: () => readonly Tensor[]) => graphOf(() => noGrad(fn)).graph;
  const chain = (y: Tensor, length: number) => {
    let z = y;
    for (let i = 0; i < length; i++) z = exp(z);
    return z;
  };

  it('drop no call with effects, nor what it needs', () => {
    const graph = traced(() => {
      tell(exp(x), order);
      exp(x);
      return [mul(x, 2)];
    });
    expect(opNames({ ...graph, calls: withoutDeadCalls(graph) })).toEqual(['exp', 'tell', 'mul']);
  });

  it('merge none', () => {
    const graph = traced(() => [tell(x, order), tell(x, order), exp(x), exp(x)]);
    expect(opNames(withoutRepeatedCalls({ ...graph, kept: new Set() }))).toEqual(['tell', 'tell', 'exp']);
  });

  it('do not change their order, but that of others', () => {
    const { calls } = traced(() => [tell(x, order), tell(x, new NotedOrder()), exp(x)]);
    expect(areIndependent(calls[0]!, calls[1]!)).toBe(false);
    expect(areIndependent(calls[0]!, calls[2]!)).toBe(true);
    expect(areIndependent(calls[2]!, calls[0]!)).toBe(true);
  });

  it('begin them as early as they were: nothing is moved before them to free memory sooner', () => {
    const late = (told: (y: Tensor) => Tensor) => {
      const graph = traced(() => {
        const large = add(x, x);
        const made = told(x);
        return [sum(large), made];
      });
      return opNames(freeFirst(graph));
    };
    expect(late((y) => mul(y, 2))).toEqual(['add', 'sum', 'mul']);
    expect(late((y) => tell(y, order))).toEqual(['add', 'tell', 'sum']);
  });

  it('list the calls of each order', () => {
    const other = new NotedOrder();
    const { calls } = traced(() => [tell(x, order, 'a'), exp(x), tell(x, other, null), tell(x, order, 'b')]);
    expect([...orderedCalls(calls)]).toEqual([[order, ['a', 'b']], [other, []]]); // prettier-ignore
  });

  it('give them a branch of their own, up to whoever needs them', () => {
    const branches = (fn: () => readonly Tensor[], rule: Parameters<typeof branchesOf>[1] = null) => {
      const found = branchesOf(traced(fn).calls, rule);
      return { joins: [...found], ordered: [...(found.ordered ?? [])].toSorted() };
    };
    const all = { fewest: 1, most: Infinity, isWorthIt: () => true };
    const fn = () => {
      const told = tell(x, order);
      const beside = exp(x);
      return [mul(chain(x, 3), told), beside];
    };
    expect(branches(fn)).toEqual({ joins: [[0, 5]], ordered: [0] });
    // What gains by it runs on another one, and both may run at once.
    expect(branches(fn, all)).toEqual({ joins: [[0, 5], [1, 6]], ordered: [0] }); // prettier-ignore
    expect(branches(() => [chain(x, 3)])).toEqual({ joins: [], ordered: [] });
    // Nobody waits for one that nobody reads, but the end; the one after it follows it.
    expect(branches(() => [tell(x, order), chain(x, 2), tell(x, order)])).toEqual({
      joins: [[0, 4], [3, 4]], // prettier-ignore
      ordered: [0, 3],
    });
    // Whoever waits for the second has waited for the first.
    expect(
      branches(() => {
        const [first, second] = [tell(x, order), tell(x, order)];
        return [mul(chain(x, 2), second), first];
      }).joins,
    ).toEqual([[0, 4], [1, 4]]); // prettier-ignore
    const products = {
      ...all,
      isWorthIt: ({ op }: { readonly op: { readonly name: string } }) => op.name === 'mul',
    };
    // One branch needs what the other makes: the chain has waited for it before.
    const across = branches(() => {
      const made = mul(x, 2);
      const between = chain(x, 2);
      const told = tell(made, order);
      return [between, mul(chain(x, 2), told)];
    }, products);
    expect(across).toEqual({ joins: [[0, 3], [3, 6]], ordered: [3] }); // prettier-ignore
    const back = branches(() => {
      const told = tell(x, order);
      const between = chain(x, 2);
      const made = mul(told, 2);
      return [between, mul(chain(x, 2), made)];
    }, products);
    expect(back).toEqual({ joins: [[0, 3], [3, 6]], ordered: [0] }); // prettier-ignore
  });

  it('know what may run at the same time on two branches', () => {
    const branches = Object.assign(new Map([[1, 6], [2, 5], [3, 6]]), { ordered: new Set([1, 3]) }); // prettier-ignore
    expect(spanOf(branches, 1)).toEqual({ first: 1, last: 5 });
    const beside = (a: number, b: number) => mayOverlap(branches, a, b);
    expect([beside(1, 2), beside(2, 3), beside(3, 2), beside(1, 4), beside(2, 4)]).toEqual(
      Array(5).fill(true),
    );
    expect([beside(1, 3), beside(2, 5), beside(0, 1), beside(0, 4), beside(1, 6)]).toEqual(
      Array(5).fill(false),
    );
  });

  it('keep the memory of what a call on a branch reads and writes until it is waited for', () => {
    const graph = traced(() => {
      const read = mul(x, 2);
      const told = tell(read, order);
      return [exp(exp(read)), told];
    });
    const read = graph.calls[0]!.outputs[0]!.storage;
    const branches = branchesOf(graph.calls, null);
    expect([...branches]).toEqual([[1, 4]]);
    expect(partsOf(graph, branches).find(({ numbers }) => numbers.includes(read))).toMatchObject({
      first: 0,
      last: 3,
    });
    expect([...takenOver(graph, branches).values()]).not.toContain(read);
    expect([...takenOver(graph).values()]).toContain(read);
  });

  it('choose branches for the others without a word in when these run', () => {
    const fn = () => {
      const told = tell(x, order);
      return [mul(chain(x, 3), told)];
    };
    const of = (choice: 'auto' | 'always' | 'never') => {
      const { graph, branches } = scheduleGraph(traced(fn), device.facts, { branches: choice });
      const place = graph.calls.findIndex(({ op }) => op === (tellOp as never));
      return { place, join: branches.get(place), isOrdered: branches.ordered?.has(place) };
    };
    expect(of('auto')).toMatchObject({ place: 0, isOrdered: true });
    expect(of('always')).toEqual(of('auto'));
    expect(of('never')).toEqual({ place: 0, join: undefined, isOrdered: undefined });
  });
});

describe('a program of the CPU', () => {
  const order = new NotedOrder();
  const descend = defineOp<undefined>({
    name: 'descend',
    autocast: 'none',
    infer: ([parameter]) => [parameter!],
    mutates: [0],
    cuda: { kind: 'custom', launch() {} },
    cpu: { kind: 'onnx', chunked: true, build: (graph, [x, y]) => [graph.node('Sub', [x!, y!])] },
  });

  it('is cut where calls with effects run, in their order', () => {
    const x = tensor([1, 2]);
    const { graph } = graphOf(() => noGrad(() => [mul(tell(add(x, 1), order), tell(x, order))]));
    const steps = scheduleSteps(graph).map(({ calls }) => calls.map(({ op }) => op.name).join(' '));
    expect(steps).toEqual(['add', 'tell', 'tell', 'mul']);
  });

  it('updates nothing before one that comes before the update, which might fail, nor moves one that writes in place', () => {
    const weight = tensor([1, 2]);
    const gradient = tensor([1, 1]);
    const { graph } = graphOf(() =>
      noGrad(() => {
        const told = tell(gradient, order);
        apply(descend, [weight, gradient], undefined);
        return [told];
      }),
    );
    const steps = graph.calls.map((call) => ({ calls: [call] }));
    expect(hoistUpdates(steps, graph.storages, () => true)).toEqual(steps);
    const inPlace = { ...graph.calls[1]!, op: { ...graph.calls[1]!.op, effects: tellOp.effects } as never };
    const later = [{ calls: [graph.calls[1]!] }, { calls: [inPlace] }].toReversed();
    expect(hoistUpdates(later, graph.storages, () => true)).toEqual(later);
  });

  it('refuses a strided input of an op that takes addresses', () => {
    const x = transpose(zeros([2, 3]), 0, 1);
    expect(() => tell(x, order)).toThrow(
      'tell: an input [3, 2] has the strides [1, 3]; call contiguous() first',
    );
  });
});
