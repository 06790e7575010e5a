import { deepStrictEqual, ok } from 'node:assert/strict';
import {
  type DType,
  type Tensor,
  cast,
  copy,
  empty,
  fromTypedArray,
  full,
  isFloatingPoint,
  noGrad,
  select,
  slice,
  tensor,
  zeros,
} from '@roofline/tensor-core';
import {
  type ProcessGroup,
  type Reduction,
  type Work,
  initProcessGroup,
  observeWorks,
} from '@roofline/collectives';
import { uniformStream } from '../../../../tooling/uniform-stream.ts';
import { expectValues, numbersOf, stridedOf, tensorOf, travelling } from './values.ts';

// Every collective, dtype and layout against values that each rank calculates by itself.

const group = await initProcessGroup({ backend: 'gloo' });
const { rank, size } = group;
const everyone = Array.from({ length: size }, (_, i) => i);
const root = size - 1;

const folds: Readonly<Record<Exclude<Reduction, 'average'>, (a: number, b: number) => number>> = {
  sum: (a, b) => a + b,
  product: (a, b) => a * b,
  min: (a, b) => Math.min(a, b),
  max: (a, b) => Math.max(a, b),
};

/** What a reduction of `numbersOf` gives in a dtype. */
function reduced(op: Reduction, length: number, dtype: DType): number[] {
  const parts = everyone.map((member) => numbersOf(member, length));
  const fold = folds[op === 'average' ? 'sum' : op];
  const values = Array.from({ length }, (_, i) => parts.map((part) => part[i]!).reduce(fold));
  if (op !== 'average') return values;
  return tensor(
    values.map((value) => value / size),
    { dtype },
  ).toFlatArray();
}

function piecesOf(members: readonly number[], length: number): number[] {
  return members.flatMap((member) => numbersOf(member, length));
}

async function checkReductions(dtype: DType): Promise<void> {
  const ops = [
    ...(Object.keys(folds) as Reduction[]),
    ...(isFloatingPoint(dtype) ? (['average'] as const) : []),
  ];
  for (const op of ops) {
    const what = `${op} of ${dtype}`;
    const own = numbersOf(rank, 12);
    const expected = reduced(op, 12, dtype);

    const inPlace = tensorOf(own, [3, 4], dtype);
    group.allReduce(inPlace, { op }).wait();
    expectValues(`allReduce in place, ${what}`, inPlace, expected);

    const input = tensorOf(own, [3, 4], dtype);
    const output = zeros([3, 4], { dtype });
    await group.allReduce(input, { op, output }).done;
    expectValues(`allReduce, ${what}`, output, expected);
    expectValues(`the input of allReduce, ${what}`, input, own);

    const strided = stridedOf(own, [3, 4], dtype);
    group.allReduce(strided, { op }).wait();
    expectValues(`allReduce of a view in place, ${what}`, strided, expected);

    const stridedInput = stridedOf(own, [3, 4], dtype);
    group.allReduce(stridedInput, { op, output }).wait();
    expectValues(`allReduce of a view, ${what}`, output, expected);

    const toRoot = tensorOf(own, [12], dtype);
    group.reduce(toRoot, root, { op }).wait();
    expectValues(`reduce in place, ${what}`, toRoot, rank === root ? expected : own);

    const reduceInput = tensorOf(own, [12], dtype);
    const reduceOutput = full([12], 7, { dtype });
    group.reduce(reduceInput, 0, { op, output: reduceOutput }).wait();
    expectValues(`reduce, ${what}`, reduceOutput, rank === 0 ? expected : Array(12).fill(7));

    const whole = reduced(op, 5 * size, dtype);
    const piece = zeros([5], { dtype });
    group.reduceScatter(piece, tensorOf(numbersOf(rank, 5 * size), [size, 5], dtype), { op }).wait();
    expectValues(`reduceScatter, ${what}`, piece, whole.slice(rank * 5, (rank + 1) * 5));

    const both = tensorOf(numbersOf(rank, 5 * size), [5 * size], dtype);
    const ownPiece = slice(both, 0, rank * 5, (rank + 1) * 5);
    group.reduceScatter(ownPiece, both, { op }).wait();
    expectValues(`reduceScatter in place, ${what}`, ownPiece, whole.slice(rank * 5, (rank + 1) * 5));
  }
}

function checkMoves(dtype: DType): void {
  const own = numbersOf(rank, 6);
  const all = piecesOf(everyone, 6);

  for (const from of everyone) {
    const x = rank === from ? tensorOf(own, [2, 3], dtype) : zeros([2, 3], { dtype });
    group.broadcast(x, from).wait();
    expectValues(`broadcast of ${dtype} from ${from}`, x, numbersOf(from, 6));
  }
  const view = stridedOf(own, [2, 3], dtype);
  group.broadcast(view, root).wait();
  expectValues(`broadcast of a view of ${dtype}`, view, numbersOf(root, 6));

  const stacked = zeros([size, 2, 3], { dtype });
  group.allGather(stacked, tensorOf(own, [2, 3], dtype)).wait();
  expectValues(`allGather of ${dtype}`, stacked, all);
  const joined = zeros([2 * size, 3], { dtype });
  group.allGather(joined, stridedOf(own, [2, 3], dtype)).wait();
  expectValues(`allGather of a view of ${dtype}`, joined, all);
  const placed = tensorOf(
    everyone.flatMap((member) => (member === rank ? own : Array<number>(6).fill(9))),
    [size, 6],
    dtype,
  );
  group.allGather(placed, select(placed, 0, rank)).wait();
  expectValues(`allGather of ${dtype} in place`, placed, all);
  const wide = stridedOf(Array(size * 6).fill(0), [size, 6], dtype);
  group.allGather(wide, tensorOf(own, [6], dtype)).wait();
  expectValues(`allGather into a view of ${dtype}`, wide, all);

  const toEach = numbersOf(rank, size * 4);
  const fromEach = zeros([size * 2, 2], { dtype });
  group.allToAll(fromEach, tensorOf(toEach, [size * 2, 2], dtype)).wait();
  const exchanged = everyone.flatMap((member) => numbersOf(member, size * 4).slice(rank * 4, (rank + 1) * 4));
  expectValues(`allToAll of ${dtype}`, fromEach, exchanged);

  const gathered = rank === root ? zeros([size, 6], { dtype }) : null;
  group.gather(gathered, tensorOf(own, [6], dtype), root).wait();
  if (gathered) expectValues(`gather of ${dtype}`, gathered, all);

  const scattered = zeros([6], { dtype });
  group.scatter(scattered, rank === 0 ? tensorOf(all, [size, 6], dtype) : null, 0).wait();
  expectValues(`scatter of ${dtype}`, scattered, own);

  if (size === 1) return;
  const [right, left] = [(rank + 1) % size, (rank + size - 1) % size];
  const received = zeros([6], { dtype });
  // All send before they receive.
  const sending = group.send(tensorOf(own, [6], dtype), right);
  group.recv(received, left).wait();
  sending.wait();
  expectValues(`send and recv of ${dtype}`, received, numbersOf(left, 6));
}

function checkEmptyAndScalars(): void {
  const nothing = empty([0, 3]);
  group.allReduce(nothing).wait();
  group.broadcast(nothing, 0).wait();
  group.allGather(empty([size, 0, 3]), nothing).wait();
  group.reduceScatter(nothing, empty([0, 3])).wait();
  group.allToAll(empty([0, 3]), empty([0, 3])).wait();
  const scalar = full([], rank + 1);
  group.allReduce(scalar).wait();
  expectValues('allReduce of a scalar', scalar, [(size * (size + 1)) / 2]);
  const all = zeros([size]);
  group.allGather(all, full([], rank)).wait();
  expectValues('allGather of scalars', all, everyone);
}

/** More elements than a segment, and not a multiple of the ranks. */
function checkLarge(): void {
  const length = 700_001;
  const parts = everyone.map((member) => {
    const next = uniformStream(member + 1);
    return Float32Array.from({ length }, () => next() - 0.5);
  });
  const x = fromTypedArray(parts[rank]!, [length]);
  group.allReduce(x).wait();
  const sums = x.toTypedArray() as Float32Array;
  const scattered = zeros([length]);
  const whole = fromTypedArray(
    Float32Array.from({ length: length * size }, (_, i) => parts[rank]![i % length]!),
    [size, length],
  );
  group.reduceScatter(scattered, whole).wait();
  const pieces = scattered.toTypedArray() as Float32Array;
  for (let i = 0; i < length; i++) {
    let [exact, magnitude] = [0, 0];
    for (const part of parts) {
      exact += part[i]!;
      magnitude += Math.abs(part[i]!);
    }
    // Each of size - 1 additions rounds to half a unit of at most the sum of the magnitudes.
    const bound = (size - 1) * 2 ** -24 * magnitude * 1.0001;
    ok(Math.abs(sums[i]! - exact) <= bound, `allReduce at ${i}: ${sums[i]} for ${exact}`);
    ok(Math.abs(pieces[i]! - exact) <= bound, `reduceScatter at ${i}: ${pieces[i]} for ${exact}`);
  }
  const all = zeros([size, length]);
  group.allGather(all, x).wait();
  for (const member of everyone)
    deepStrictEqual(select(all, 0, member).toTypedArray(), sums, 'all ranks have the same bits');
}

function checkSpecialValues(): void {
  for (const dtype of ['float32', 'float16', 'bfloat16', 'float64'] as const) {
    for (const op of ['min', 'max'] as const) {
      const x = tensor([rank === 0 ? NaN : 1, rank === 0 ? -Infinity : 2, rank === root ? NaN : 0], {
        dtype,
      });
      group.allReduce(x, { op }).wait();
      expectValues(`${op} of ${dtype} next to NaN`, x, [
        NaN,
        op === 'min' ? -Infinity : size > 1 ? 2 : -Infinity,
        NaN,
      ]);
    }
    const x = tensor([Infinity, rank === 0 ? -Infinity : 1], { dtype });
    group.allReduce(x).wait();
    expectValues(`infinities of ${dtype}`, x, [Infinity, -Infinity]);
  }
  // Sums round to nearest, ties to even: 2049 and 257 lie between their neighbours in float16 and bfloat16.
  for (const [dtype, large] of [
    ['float16', 2048],
    ['bfloat16', 256],
  ] as const) {
    const x = tensor([rank === 0 ? large : rank === 1 ? 1 : 0, rank === 0 ? large + 2 : rank === 1 ? 1 : 0], {
      dtype,
    });
    group.allReduce(x).wait();
    expectValues(`rounding of ${dtype}`, x, size === 1 ? [large, large + 2] : [large, large + 4]);
  }
  // Sums that float16 cannot hold, whose averages it can.
  const large = tensor([60_000, -60_000, rank === 0 ? Infinity : 1, 2 ** -24], { dtype: 'float16' });
  const averages = [60_000, -60_000, Infinity, 2 ** -24];
  const pieces = tensor(Array<number>(size * 2).fill(60_000), { dtype: 'float16' });
  const piece = zeros([2], { dtype: 'float16' });
  group.reduceScatter(piece, pieces, { op: 'average' }).wait();
  expectValues('averages of large float16, scattered', piece, [60_000, 60_000]);
  const onRoot = copy(large);
  group.reduce(onRoot, root, { op: 'average' }).wait();
  expectValues(
    'averages of large float16, on the root',
    onRoot,
    rank === root ? averages : large.toFlatArray(),
  );
  group.allReduce(large, { op: 'average' }).wait();
  expectValues('averages of large float16', large, averages);
  const beyond = cast(full([1], 2 ** 31 - 1), 'int64');
  group.allReduce(beyond).wait();
  ok(Number(beyond.toFlatArray()[0]) >= 2 ** 31 - 1);
}

/** Calls that overlap, and tensors that are disposed while they travel. */
async function checkAsynchronous(): Promise<void> {
  const works = Array.from({ length: 20 }, (_, i) => {
    const x = full([1000], rank + i);
    return { x, i, work: group.allReduce(x) };
  });
  for (const { work } of works.toReversed()) await work.done;
  for (const { x, i, work } of works) {
    ok(work.isDone);
    work.wait();
    deepStrictEqual(
      x.toFlatArray()[999],
      everyone.reduce((sum, member) => sum + member + i, 0),
    );
    x.dispose();
  }
  const lost = full([100_000], 1);
  const { storage } = lost;
  const work = group.allReduce(lost);
  lost.dispose();
  ok(storage.references > 0, 'a work holds its storage');
  work.wait();
  deepStrictEqual(storage.references, 0, 'and lets go of it');

  const parameter = full([3], rank).requiresGrad_();
  noGrad(() => group.broadcast(parameter, root)).wait();
  expectValues('a parameter', parameter, [root, root, root]);
}

/** Pairs of ranks that send in both directions at once, in an order that a queue of all calls would not survive. */
function checkPointToPoint(): void {
  const others = everyone.filter((member) => member !== rank);
  const received = others.map(() => zeros([2, 1000], { dtype: 'int32' }));
  const works = others.flatMap((to) =>
    [0, 1].map((k) => group.send(full([1000], rank * 10 + k, { dtype: 'int32' }), to)),
  );
  for (let i = others.length - 1; i >= 0; i--)
    for (const k of [0, 1]) works.push(group.recv(select(received[i]!, 0, k), others[i]!));
  for (const work of works.toReversed()) work.wait();
  others.forEach((from, i) => {
    for (const k of [0, 1])
      deepStrictEqual(new Set(select(received[i]!, 0, k).toFlatArray()), new Set([from * 10 + k]));
  });
}

async function checkObjects(in_: ProcessGroup): Promise<void> {
  const values = await in_.allGatherObject({
    from: in_.rank,
    text: 'x'.repeat(in_.rank * 1001),
    list: [1n, null],
  });
  deepStrictEqual(
    values,
    Array.from({ length: in_.size }, (_, from) => ({
      from,
      text: 'x'.repeat(from * 1001),
      list: [1n, null],
    })),
  );
  deepStrictEqual(await in_.allGatherObject(undefined), Array(in_.size).fill(undefined));
}

async function checkSubGroups(): Promise<void> {
  const members = everyone.filter((member) => member % 2 === rank % 2).toReversed();
  for (const round of [0, 1]) {
    const half = await group.subGroup(members);
    deepStrictEqual([half.size, half.rank, half.ranks], [members.length, members.indexOf(rank), members]);
    const x: Tensor = full([5], rank + round);
    half.allReduce(x).wait();
    expectValues(
      'allReduce of half',
      x,
      Array(5).fill(members.reduce((sum, member) => sum + member + round, 0)),
    );
    await checkObjects(half);
    half.dispose();
  }
}

/** One after the other, between what this rank saw of them. */
function checkTimes(): void {
  const seen: Work[] = [];
  const ignore = observeWorks((work) => seen.push(work));
  const startMs = performance.now();
  const works = [zeros([100_000]), zeros([0]), zeros([3])].map((x) => group.allReduce(x));
  for (const work of works) work.wait();
  const endMs = performance.now();
  ignore();
  group.barrier().wait();
  deepStrictEqual(seen, works);
  const times = works.flatMap(({ ran }) => [ran!.startMs, ran!.endMs]);
  // Two clocks are read one after the other.
  const between = [startMs - 0.1, ...times, endMs + 0.1];
  deepStrictEqual(
    between,
    between.toSorted((a, b) => a - b),
  );
}

for (const dtype of travelling) {
  await checkReductions(dtype);
  checkMoves(dtype);
}
checkEmptyAndScalars();
checkLarge();
checkTimes();
checkSpecialValues();
await checkAsynchronous();
checkPointToPoint();
await checkObjects(group);
await checkSubGroups();
group.barrier().wait();
console.log('all right');
