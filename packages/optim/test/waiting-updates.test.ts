import {
  type Tensor,
  apply,
  applyOne,
  defineOp,
  exp,
  keep,
  neg,
  noGrad,
  softmax,
  zeros,
} from '@roofline/tensor-core';
import { openPlanningDevice } from '@roofline/tensor-core/testing';
import { describe, expect, it } from 'vitest';
import type { Graph } from '../../tensor-core/src/compile/graph/graph.ts';
import { updateEarly } from '../../tensor-core/src/compile/passes/update-early.ts';
import { NotedOrder, tell, tellOp } from '../../tensor-core/test/compile/ordered-effects-op.ts';
import { namesAfter } from '../../tensor-core/test/compile/passes/names-after.ts';
import { SGD } from '../src/index.ts';

const device = openPlanningDevice();
const order = new NotedOrder();
const [x, ...given] = Array.from({ length: 5 }, () => zeros([4, 4], { device })) as [Tensor, ...Tensor[]];
const weights = given.map(() => zeros([4, 4], { device }).requiresGrad_());

/** What all ranks reduce: the gradient of the weight of a number. */
const reduced = (number: number, text = 'call') => tell(neg(given[number]!), order, text);

/** A step of the weights that `backward` gives gradients; it returns what else is made before the step. */
function stepOf(count: number, backward: (own: readonly Tensor[]) => readonly Tensor[]) {
  const own = weights.slice(0, count);
  const optimizer = new SGD(own, { learningRate: 0.1 });
  return () => {
    const made = backward(own);
    optimizer.step();
    for (const w of own) w.grad = null;
    return made;
  };
}

/** The ops after `updateEarly`, an update with the numbers of its weights; as early as pays where `l2Bytes` are few. */
function opsAfter(fn: () => readonly Tensor[], l2Bytes: number): string {
  let graph: Graph;
  namesAfter(device, (before) => (graph = updateEarly(before, { ...device.facts, l2Bytes })), fn);
  const numberOf = (storage: number) => {
    const { source } = graph.storages[storage]!;
    return weights.findIndex((w) => 'storage' in source && source.storage === w.storage);
  };
  return graph!.calls
    .filter(({ op }) => op.name !== 'sgd_coefficients')
    .map(({ op, outputs }) =>
      op.name === 'sgd' ? `sgd(${outputs.map(({ storage }) => numberOf(storage)).join()})` : op.name,
    )
    .join(' ');
}

describe('what is updated at the step, in the order in which calls with effects bring it', () => {
  it.each<[string, string, () => readonly Tensor[]]>([
    [
      'though the weights are in another',
      'neg tell neg tell softmax sgd(1) sgd(0)',
      stepOf(2, ([first, second]) => {
        second!.grad = keep(reduced(1));
        first!.grad = keep(reduced(0));
        return [softmax(x, -1)];
      }),
    ],
    [
      'by half of what is left each time',
      'neg tell neg tell neg tell neg tell sgd(0,1) sgd(2) sgd(3)',
      stepOf(4, (own) => {
        own.forEach((w, i) => (w.grad = keep(reduced(i))));
        return [];
      }),
    ],
    [
      'first of all what waits for none, though one is the first call',
      'tell softmax sgd(1) sgd(0)',
      stepOf(2, ([first, second]) => {
        first!.grad = keep(tell(given[0]!, order));
        second!.grad = given[1]!;
        return [softmax(x, -1)];
      }),
    ],
  ])('%s', (_, expected, fn) => {
    expect(opsAfter(fn, 2 ** 20)).toBe(expected);
  });
});

/** What takes the GPU as long as 128 bytes, and moves none. */
const count = defineOp<undefined>({
  name: 'count',
  autocast: 'none',
  infer: ([a]) => [a!],
  cost: () => ({ flops: 128 * 200, bytesMoved: 0 }),
  cuda: { kind: 'custom', launch: () => {} },
});

/** A gradient that comes in less than the time of 128 bytes, and three calls before somebody waits for what comes next. */
const beside = (other: () => Tensor) =>
  stepOf(1, ([first]) => {
    first!.grad = keep(reduced(0, 'short'));
    const gathered = tell(x, order, 'slow');
    const others = [0, 1, 2].map(other);
    return [...others, exp(gathered), exp(x)];
  });

describe('what is updated before the step, when what brings its gradient is done', () => {
  it.each<[string, string, () => readonly Tensor[]]>([
    [
      'be it the first call',
      'tell neg tell sgd(0) softmax sgd(1)',
      stepOf(2, ([first, second]) => {
        first!.grad = keep(tell(given[0]!, order));
        second!.grad = keep(reduced(1));
        return [softmax(x, -1)];
      }),
    ],
    [
      'as the next one begins, however many follow',
      'neg tell neg tell sgd(0) neg tell sgd(1) softmax sgd(2)',
      stepOf(3, (own) => {
        own.forEach((w, i) => (w.grad = keep(reduced(i))));
        return [softmax(x, -1)];
      }),
    ],
    [
      'as the next one begins whose result nobody reads',
      'neg tell tell sgd(0) softmax',
      stepOf(1, ([first]) => {
        first!.grad = keep(reduced(0, 'slow'));
        return [tell(x, order), softmax(x, -1)];
      }),
    ],
    [
      'once something waits for the next one, whatever else does later',
      'neg tell tell softmax sgd(0) exp softmax',
      stepOf(1, ([first]) => {
        first!.grad = keep(reduced(0, 'slow'));
        const gathered = tell(x, order);
        return [softmax(gathered, -1), exp(gathered), softmax(x, -1)];
      }),
    ],
    [
      'once something waits that has no effects itself',
      'neg tell tell tell softmax sgd(0) exp',
      stepOf(1, ([first]) => {
        first!.grad = keep(reduced(0, 'slow'));
        const gathered = tell(x, order);
        return [tell(gathered, order), softmax(gathered, -1), exp(x)];
      }),
    ],
    [
      'once somebody waits for the next one that writes over what was there',
      'exp neg tell tell softmax sgd(0) exp',
      stepOf(1, ([first]) => {
        const gathered = exp(x);
        first!.grad = keep(reduced(0, 'slow'));
        noGrad(() => apply(tellOp, [x], { order, text: null }, [gathered]));
        return [softmax(gathered, -1), exp(x)];
      }),
    ],
    [
      'or once other calls have taken twice its time, by the bytes that they move',
      'neg tell tell softmax softmax sgd(0) softmax exp exp',
      beside(() => softmax(x, -1)),
    ],
    [
      'or by their arithmetic',
      'neg tell tell count count sgd(0) count exp exp',
      beside(() => applyOne(count, [x], undefined)),
    ],
  ])('%s', (_, expected, fn) => {
    expect(opsAfter(fn, 128)).toBe(expected);
  });
});
