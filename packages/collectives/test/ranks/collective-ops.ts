import { deepStrictEqual, ok, throws } from 'node:assert/strict';
import {
  type DType,
  type Tensor,
  add,
  addInPlace,
  backward,
  copyInPlace,
  costOf,
  expand,
  fillInPlace,
  isFloatingPoint,
  mul,
  noGrad,
  observeOps,
  scope,
  slice,
  sum,
  toDevice,
  transpose,
} from '@roofline/tensor-core';
import {
  type Reduction,
  allGather,
  allReduce,
  allToAll,
  shift,
  broadcast,
  receive,
  reduce,
  reduceScatter,
  send,
} from '@roofline/collectives';
import { collectGarbage } from './collect-garbage.ts';
import { groupOf, place } from './group-of.ts';
import { expectValues, numbersOf, stridedOf, tensorOf, travelling } from './values.ts';

// Collectives as ops: values in every dtype, gradients by finite differences, lifetimes, writes before and after.

const { group, device, nccl } = await groupOf();
const { rank, size } = group;
const everyone = Array.from({ length: size }, (_, i) => i);
const root = size - 1;

const on = (
  values: readonly number[],
  shape: readonly number[] = [values.length],
  dtype: DType = 'float32',
) => toDevice(tensorOf(values, shape, dtype), device);
const ownNumbers = (length: number) => numbersOf(rank, length);
const sumOfAll = (length: number) =>
  Array.from({ length }, (_, i) => everyone.reduce((sum, member) => sum + numbersOf(member, length)[i]!, 0));

function checkValues(dtype: DType): void {
  const own = on(ownNumbers(6), [3, 2], dtype);
  const folds = { sum: (a: number, b: number) => a + b, max: Math.max, min: Math.min } as const;
  for (const [op, fold] of Object.entries(folds)) {
    const expected = ownNumbers(6).map((_, i) =>
      everyone.map((m) => numbersOf(m, 6)[i]!).reduce((a, b) => fold(a, b)),
    );
    expectValues(`allReduce ${op} ${dtype}`, allReduce(own, group, { op: op as Reduction }), expected);
  }
  const whole = everyone.flatMap((member) => numbersOf(member, 6));
  const gathered = allGather(own, group);
  deepStrictEqual(gathered.shape, [3 * size, 2]);
  expectValues(`allGather ${dtype}`, gathered, whole);
  const scattered = reduceScatter(on(ownNumbers(4 * size), [2 * size, 2], dtype), group);
  deepStrictEqual(scattered.shape, [2, 2]);
  expectValues(`reduceScatter ${dtype}`, scattered, sumOfAll(4 * size).slice(rank * 4, rank * 4 + 4));
  expectValues(
    `allToAll ${dtype}`,
    allToAll(on(ownNumbers(3 * size), [size, 3], dtype), group),
    everyone.flatMap((member) => numbersOf(member, 3 * size).slice(rank * 3, rank * 3 + 3)),
  );
  for (const by of [1, -1, 0, size + 2]) {
    const from = (((rank - by) % size) + size) % size;
    expectValues(`shift by ${by} ${dtype}`, shift(own, by, group), numbersOf(from, 6));
  }
  for (const from of everyone) {
    expectValues(`broadcast ${dtype}`, broadcast(own, from, group), numbersOf(from, 6));
    expectValues(`reduce ${dtype}`, reduce(own, from, group), rank === from ? sumOfAll(6) : Array(6).fill(0));
  }
  expectValues(`the input, ${dtype}`, own, ownNumbers(6));
  if (size > 1 && rank === 0) expectValues(`send ${dtype}`, send(own, root, group), [0]);
  if (size > 1 && rank === root) expectValues(`receive ${dtype}`, receive(own, 0, group), numbersOf(0, 6));
  if (!isFloatingPoint(dtype)) return;
  const halves = numbersOf(0, 6).map((value) => value * 0.5);
  expectValues(`average ${dtype}`, allReduce(on(halves, [6], dtype), group, { op: 'average' }), halves);
}

/** The sum over ranks of what `f` gives, which is one number on all of them. */
function total(f: () => Tensor): number {
  return noGrad(() => scope(() => Number(allReduce(sum(f()), group).toFlatArray()[0])));
}

/** The gradient of the sum of `f` over all ranks by finite differences of each rank's input in turn. */
function checkGradient(what: string, shape: readonly number[], f: (x: Tensor) => Tensor): void {
  const length = shape.reduce((a, b) => a * b, 1);
  const values = ownNumbers(length).map((value) => value + 0.25 * rank);
  const x = on(values, shape, 'float64').requiresGrad_();
  backward(sum(f(x)));
  const gradient = x.grad?.toFlatArray() ?? Array<number>(length).fill(0);
  const epsilon = 1e-3;
  for (const member of everyone)
    for (let i = 0; i < length; i++) {
      const [up, down] = [epsilon, -epsilon].map((step) => {
        const moved = values.map((value, j) => value + (member === rank && i === j ? step : 0));
        return total(() => f(on(moved, shape, 'float64')));
      });
      const slope = (up! - down!) / (2 * epsilon);
      if (member === rank)
        ok(Math.abs(slope - gradient[i]!) < 1e-6, `${what}: ${slope} is not ${gradient[i]}`);
    }
}

function checkGradients(): void {
  // Weights that differ by rank and element, and squares, so that no wrong sum goes unnoticed; of squares, differences are exact
  // but for rounding.
  const weights = (y: Tensor) => {
    const values = on(
      Array.from({ length: y.size }, (_, i) => 1 + rank + i * 0.5),
      [y.size],
      'float64',
    );
    return values.view(y.shape);
  };
  const weighted = (y: Tensor) => mul(mul(y, y), weights(y));
  checkGradient('allReduce', [3], (x) => weighted(allReduce(x, group)));
  checkGradient('the average', [3], (x) => weighted(allReduce(x, group, { op: 'average' })));
  checkGradient('allGather', [2, 2], (x) => weighted(allGather(x, group)));
  checkGradient('reduceScatter', [2 * size], (x) => weighted(reduceScatter(x, group)));
  checkGradient('the scattered average', [2 * size], (x) =>
    weighted(reduceScatter(x, group, { op: 'average' })),
  );
  checkGradient('allToAll', [size, 2], (x) => weighted(allToAll(x, group)));
  checkGradient('shift', [2, 2], (x) => weighted(shift(x, 1, group)));
  checkGradient('broadcast', [3], (x) => weighted(broadcast(x, root, group)));
  checkGradient('reduce', [3], (x) => weighted(reduce(x, root, group)));
  checkGradient('the reduced average', [3], (x) => weighted(reduce(x, 0, group, { op: 'average' })));
  checkGradient('an operand used twice', [2], (x) => {
    const y = add(allReduce(x, group), mul(x, allReduce(x, group)));
    return mul(y, weights(y));
  });
  checkGradient('a strided operand', [2, 3], (x) => weighted(allGather(transpose(x, 0, 1), group)));
  checkGradient('one after the other', [2], (x) => weighted(reduceScatter(allGather(x, group), group)));
  if (size > 1)
    checkGradient('send and receive', [3], (x) => {
      if (rank === 0) return add(weighted(x), send(x, root, group));
      return rank === root ? weighted(receive(x, 0, group)) : weighted(x);
    });
}

/** What a call works on may be written and disposed of at once. */
function checkLifetimes(): void {
  const expected = sumOfAll(1024);
  const results = Array.from({ length: 20 }, (_, i) => {
    const x = on(ownNumbers(1024));
    const y = allReduce(x, group);
    if (i % 3 === 0) x.dispose();
    else if (i % 3 === 1) fillInPlace(x, 7);
    else scope(() => void mul(x, 3));
    if (i % 4 === 0) collectGarbage();
    return y;
  });
  for (const y of results) expectValues('of an input that is gone or written', y, expected);
  // Nobody reads these.
  for (let i = 0; i < 5; i++) allReduce(on(ownNumbers(1024)), group).dispose();
  scope(() => void allGather(on(ownNumbers(1024)), group));
  const twice = on(ownNumbers(4));
  expectValues(
    'added to itself',
    add(allReduce(twice, group), allReduce(twice, group)),
    sumOfAll(4).map((v) => 2 * v),
  );
  const target = on(ownNumbers(4));
  addInPlace(target, allReduce(target, group));
  expectValues(
    'added to its operand',
    target,
    ownNumbers(4).map((v, i) => v + sumOfAll(4)[i]!),
  );
  copyInPlace(target, on(ownNumbers(4)));
  expectValues('after a write', allReduce(target, group), sumOfAll(4));
  const result = allReduce(target, group);
  fillInPlace(result, 5);
  expectValues('a result that is written', result, [5, 5, 5, 5]);
}

function checkLayouts(): void {
  const strided = toDevice(stridedOf(ownNumbers(12), [3, 4], 'float32'), device);
  expectValues('a view', allReduce(slice(strided, 1, 0, 4), group), sumOfAll(12));
  const wide = on(ownNumbers(12), [3, 4]);
  const columns = slice(wide, 1, 1, 3);
  ok(!columns.isContiguous);
  expectValues(
    'columns',
    allReduce(columns, group),
    [0, 1, 2].flatMap((i) => sumOfAll(12).slice(i * 4 + 1, i * 4 + 3)),
  );
  expectValues('a part', allReduce(slice(wide, 0, 1, 2), group), sumOfAll(12).slice(4, 8));
  expectValues('a scalar', allGather(sum(on([rank])), group), everyone);
  expectValues(
    'expanded',
    allReduce(expand(on([rank], [1, 1]), [2, 2]), group),
    Array(4).fill((size * (size - 1)) / 2),
  );
  deepStrictEqual(allReduce(on([], [0, 3]), group).shape, [0, 3]);
  deepStrictEqual(allGather(on([], [0, 3]), group).shape, [0, 3]);
}

async function checkGroups(): Promise<void> {
  const alone = await group.subGroup([rank]);
  const again = await group.subGroup(everyone);
  const x = on(ownNumbers(8));
  const [a, b, c] = [allReduce(x, group), allReduce(x, again, { op: 'max' }), allGather(x, alone)];
  expectValues('of the third group', c, ownNumbers(8));
  const most = ownNumbers(8).map((_, i) => Math.max(...everyone.map((member) => numbersOf(member, 8)[i]!)));
  expectValues('of the second group', b, most);
  expectValues('of the first group', a, sumOfAll(8));
  const beside = group.allReduce(x);
  beside.wait();
  expectValues('in place, beside ops', x, sumOfAll(8));
  expectValues(
    'on the stream of ops',
    group.onCurrentStream(() => allReduce(x, group, { op: 'max' })),
    sumOfAll(8),
  );
  alone.dispose();
  throws(() => allReduce(x, alone), /used after it had been disposed/);
}

function checkFacts(): void {
  const seen: string[] = [];
  const stop = observeOps({
    before: (op, inputs, outputs, attributes) => {
      const { linkBytes } = costOf(op, inputs, outputs, attributes as never);
      seen.push(`${op.name} ${linkBytes} ${op.effects?.describe(inputs, outputs, attributes as never)}`);
    },
  });
  const x = on(ownNumbers(4 * size));
  const bytes = x.byteLength;
  scope(
    () =>
      void [
        allReduce(x, group),
        reduceScatter(x, group),
        allToAll(x, group),
        allGather(x, group),
        shift(x, -1, group),
      ],
  );
  stop();
  const share = (size - 1) / size;
  deepStrictEqual(seen, [
    `allReduce ${2 * share * bytes} allReduce(sum) float32 [${4 * size}]`,
    `reduceScatter ${share * bytes} reduceScatter(sum) float32 [4]`,
    `allToAll ${share * bytes} allToAll float32 [${4 * size}]`,
    `allGather ${share * bytes * size} allGather float32 [${4 * size}]`,
    `shift ${bytes} shift(by ${(size - 1) % size}) float32 [${4 * size}]`,
  ]);
  const y = on([1, 2, 3]).requiresGrad_();
  throws(() => allReduce(y, group, { op: 'max' }), /a max over ranks has no gradient/);
  if (size > 1)
    throws(() => reduceScatter(on(ownNumbers(size + 1)), group), /a multiple of the group's size/);
  if (place !== 'gloo')
    throws(() => allReduce(tensorOf([1], [1], 'float32'), group), /nccl takes tensors of cuda/);
}

for (const dtype of travelling) scope(() => checkValues(dtype));
scope(checkGradients);
scope(checkLifetimes);
scope(checkLayouts);
await checkGroups();
scope(checkFacts);
group.barrier().wait();
group.dispose();
deepStrictEqual(nccl?.faults() ?? '', '');
console.log('all right');
