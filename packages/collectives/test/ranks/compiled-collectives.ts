import { deepStrictEqual, ok, throws } from 'node:assert/strict';
import {
  type CompileOptions,
  type Tensor,
  add,
  addInPlace,
  backward,
  compile,
  copyInPlace,
  exp,
  fillInPlace,
  matmul,
  mul,
  noGrad,
  observeOps,
  ones,
  scope,
  slice,
  sum,
  toDevice,
  transpose,
  zeros,
} from '@roofline/tensor-core';
import {
  CollectiveError,
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
import { rankNames } from '../../src/ranks/rank-names.ts';
import { collectGarbage } from './collect-garbage.ts';
import { groupOf, place } from './group-of.ts';
import { expectValues, numbersOf, tensorOf } from './values.ts';

// Compiled functions with collectives in them: each does what it does eagerly, on all ranks, replay after replay.

const { group, device, nccl } = await groupOf();
const { rank, size } = group;
const everyone = Array.from({ length: size }, (_, i) => i);
const root = size - 1;
const replays = 4;

const on = (values: readonly number[], shape: readonly number[] = [values.length]) =>
  toDevice(tensorOf(values, shape, 'float32'), device);
const inputOf = (round: number, shape: readonly number[]) =>
  on(
    numbersOf(
      rank + 3 * round,
      shape.reduce((a, b) => a * b, 1),
    ),
    shape,
  );

type Step = (x: Tensor) => readonly Tensor[];

/** Replays give what eager calls give, to the last bit, with every choice of branches. */
function checkSame(what: string, shape: readonly number[], step: Step, options: CompileOptions = {}): void {
  for (const branches of ['auto', 'always', 'never'] as const) {
    const compiled = compile(step, { branches, ...options });
    scope(() => {
      for (let round = 0; round < replays; round++) {
        const expected = step(inputOf(round, shape)).map((y) => y.toFlatArray());
        const given = compiled(inputOf(round, shape)).map((y) => y.toFlatArray());
        expectSame(`${what}, ${branches}, round ${round}`, given, expected);
      }
    });
    deepStrictEqual([compiled.cache.hits, compiled.cache.misses], [replays - 1, 1], what);
    compiled.dispose();
  }
}

/** A real GPU rounds a product and a sum together once where one kernel does both. */
function expectSame(what: string, given: readonly number[][], expected: readonly number[][]): void {
  const isSame = (x: number, y: number) =>
    place === 'real' ? Math.abs(x - y) <= 2 ** -20 * Math.max(1, Math.abs(y)) : Object.is(x + 0, y + 0);
  deepStrictEqual(
    given.map(({ length }) => length),
    expected.map(({ length }) => length),
    what,
  );
  const differing = given.flatMap((values, i) =>
    values.flatMap((value, j) => (isSame(value, expected[i]![j]!) ? [] : [[i, j, value, expected[i]![j]]])),
  );
  deepStrictEqual(differing, [], what);
}

const chain = (x: Tensor, length = 6) => {
  let y = x;
  for (let i = 0; i < length; i++) y = mul(exp(mul(y, 0.125)), 0.5);
  return y;
};

function checkOps(): void {
  checkSame('allReduce', [6], (x) => [allReduce(x, group)]);
  checkSame('the average', [6], (x) => [allReduce(mul(x, 3), group, { op: 'average' })]);
  checkSame('allGather', [3, 2], (x) => [mul(allGather(add(x, 1), group), 2)]);
  checkSame('reduceScatter', [2 * size, 3], (x) => [reduceScatter(mul(x, x), group)]);
  checkSame('allToAll', [size, 5], (x) => [exp(allToAll(x, group))]);
  checkSame('shift', [2, 3], (x) => [add(shift(mul(x, 2), 1, group), shift(x, -1, group))]);
  checkSame('broadcast', [4], (x) => [add(broadcast(x, root, group), x)]);
  checkSame('reduce', [4], (x) => [add(reduce(x, root, group), x)]);
  if (size > 1)
    checkSame('send and receive', [4], (x) => {
      if (rank === 0) return [add(x, send(mul(x, 2), root, group))];
      return [mul(rank === root ? receive(x, 0, group) : x, 3)];
    });
}

/** Work beside collectives, in an order that a missing wait would show. */
function checkOverlap(): void {
  checkSame('a collective beside a chain', [32], (x) => {
    const reduced = allReduce(mul(x, 2), group);
    const beside = chain(x);
    return [add(reduced, beside), beside];
  });
  checkSame('several, read in another order', [8], (x) => {
    const [a, b, c] = [allReduce(x, group), allGather(mul(x, 2), group), allReduce(mul(x, 3), group)];
    const beside = chain(x);
    return [mul(c, beside), sum(b), add(a, c)];
  });
  checkSame('one needs another', [4 * size], (x) => {
    const piece = reduceScatter(x, group);
    return [allGather(mul(piece, chain(piece)), group)];
  });
  checkSame('an operand used twice', [8], (x) => {
    const y = mul(x, 2);
    return [add(allReduce(y, group), allReduce(y, group)), add(y, allReduce(y, group))];
  });
  checkSame('strided operands', [4, 6], (x) => {
    const y = mul(x, 2);
    return [allReduce(slice(y, 1, 1, 4), group), allGather(transpose(y, 0, 1), group)];
  });
  checkSame('products', [4, 4], (x) => [
    matmul(allReduce(matmul(x, x), group), allGather(x, group).view([4, 4 * size])),
  ]);
  checkSame('no elements', [0, 3], (x) => [allReduce(x, group), allGather(x, group)]);
}

/** Memory that is written before, after and beside a collective. */
function checkWrites(): void {
  checkSame('written after it was given', [8], (x) => {
    const y = mul(x, 2);
    const reduced = allReduce(y, group);
    fillInPlace(y, 7);
    return [reduced, y];
  });
  checkSame('written before it is given', [8], (x) => {
    const y = mul(x, 2);
    addInPlace(y, x);
    const reduced = allReduce(y, group);
    addInPlace(reduced, chain(x));
    return [reduced];
  });
  const kept = zeros([8], { device });
  const step = compile((x: Tensor) => {
    const before = allReduce(kept, group);
    copyInPlace(kept, allReduce(x, group));
    return add(before, chain(x));
  });
  let expected = Array<number>(8).fill(0);
  for (let round = 0; round < replays; round++) {
    const result = scope(() => step(inputOf(round, [8])).toFlatArray());
    const beside = scope(() => chain(inputOf(round, [8])).toFlatArray());
    const reducedBefore = scope(() => allReduce(on(expected), group).toFlatArray());
    const sums = scope(() => add(on(reducedBefore), on(beside)).toFlatArray());
    expectSame('of what the last run wrote', [result], [sums]);
    expected = scope(() => allReduce(inputOf(round, [8]), group).toFlatArray());
    expectValues('a tensor from outside', kept, expected);
  }
  step.dispose();
}

/** What nobody reads runs all the same: the others take part in it. Equal calls are two. */
function checkUnread(): void {
  const step = compile((x: Tensor) => {
    allReduce(mul(x, 2), group);
    allReduce(mul(x, 2), group);
    // Only one rank reads this.
    const gathered = allGather(x, group);
    return rank === 0 ? sum(gathered) : mul(x, 2);
  });
  for (let round = 0; round < replays; round++) {
    const x = inputOf(round, [4]);
    const result = step(x);
    x.dispose();
    const all = everyone.flatMap((member) => numbersOf(member + 3 * round, 4));
    const expected =
      rank === 0 ? [all.reduce((a, b) => a + b, 0)] : numbersOf(rank + 3 * round, 4).map((v) => 2 * v);
    expectValues('beside what nobody reads', result, expected);
    result.dispose();
    collectGarbage();
  }
  const calls = step.explain()[0]!.table.filter(({ op }) => op === 'allReduce');
  deepStrictEqual(calls.length, 2);
  step.dispose();
}

function checkGradients(): void {
  const weight = toDevice(tensorOf(numbersOf(rank, 12), [4, 3], 'float32'), device).requiresGrad_();
  const step = (x: Tensor): readonly Tensor[] => {
    weight.grad?.dispose();
    weight.grad = null;
    const whole = allGather(weight, group);
    const y = reduceScatter(matmul(x, transpose(whole, 0, 1)), group);
    const loss = sum(mul(y, y));
    backward(loss);
    const average = noGrad(() => allReduce(weight.grad!, group, { op: 'average' }));
    return [loss.detach(), average];
  };
  checkSame('gradients', [2 * size, 3], (x) => [...step(x), noGrad(() => mul(weight.grad!, 1))]);
}

async function checkGroups(): Promise<void> {
  const again = await group.subGroup(everyone);
  const alone = await group.subGroup([rank]);
  checkSame('three groups', [8], (x) => {
    const [a, b] = [allReduce(x, group), allReduce(mul(x, 2), again, { op: 'max' })];
    const c = allReduce(add(a, chain(x)), alone);
    return [add(allReduce(b, group), c), allGather(c, again)];
  });
  if (size === 1) return;
  // In a group of its own each rank may call what it likes.
  const differing = compile((x: Tensor) => {
    const first = rank === 0 ? 'max' : 'min';
    return allReduce(x, alone, { op: first });
  });
  for (let i = 0; i < 2; i++) differing(inputOf(i, [4])).dispose();
  differing.dispose();
  checkDifferences();
  alone.dispose();
  again.dispose();
}

/** Ranks that have compiled different programs learn of the first call that differs, and the group goes on. */
function checkDifferences(): void {
  // The longer one has traced its calls with another function, so that the ranks' calls fit while they trace.
  const isLong = rank === 0;
  const long = compile((x: Tensor) => add(allReduce(x, group), allReduce(mul(x, 2), group)));
  const [one, two] = [
    compile((x: Tensor) => allReduce(x, group)),
    compile((x: Tensor) => allReduce(x, group)),
  ];
  const x = inputOf(0, [4]);
  if (isLong) long(x).dispose();
  else for (const short of [one, two]) short(x).dispose();
  throws(
    () => (isLong ? long(x) : one(x)),
    (error: unknown) => {
      ok(error instanceof CollectiveError, String(error));
      const others = rankNames(everyone.slice(1));
      ok(error.message.includes('they differ in call 2 of this group'), error.message);
      ok(
        error.message.includes(`rank 0: allReduce(sum) float32 [4]; ${others}: nothing more`),
        error.message,
      );
      return true;
    },
  );
  expectValues('the group goes on', allReduce(ones([1], { device }), group), [size]);
}

const together = (calls: () => void) => group.coalesce(calls).wait();

/** Calls in place, whose results replays leave where they were asked to. */
function checkInPlace(): void {
  const calls: Readonly<Record<string, readonly [number, (y: Tensor, x: Tensor) => void]>> = {
    allReduce: [6, (y) => group.allReduce(y).wait()],
    'allReduce into another': [6, (y, x) => group.allReduce(x, { op: 'max', output: y }).wait()],
    average: [6, (y) => group.allReduce(y, { op: 'average', context: 'step 3' }).wait()],
    reduce: [6, (y) => group.reduce(y, root).wait()],
    'reduce into another': [6, (y, x) => group.reduce(x, 0, { output: y }).wait()],
    broadcast: [6, (y) => group.broadcast(y, root).wait()],
    allGather: [6 * size, (y, x) => group.allGather(y, slice(x, 0, 0, 6)).wait()],
    'allGather of a piece': [6 * size, (y) => group.allGather(y, slice(y, 0, rank * 6, rank * 6 + 6)).wait()],
    reduceScatter: [6, (y, x) => group.reduceScatter(y, allGather(x, group)).wait()],
    'reduceScatter into a piece': [
      6 * size,
      (y) => group.reduceScatter(slice(y, 0, rank * 6, rank * 6 + 6), y).wait(),
    ],
    allToAll: [6 * size, (y, x) => group.allToAll(y, x).wait()],
    'allReduce of columns': [12, (y) => group.allReduce(slice(y.view([3, 4]), 1, 1, 3)).wait()],
    'broadcast to columns': [12, (y) => group.broadcast(slice(y.view([3, 4]), 1, 1, 3), root).wait()],
    'broadcasts together': [
      12,
      (y) =>
        together(() => {
          group.broadcast(slice(y, 0, 0, 6), root);
          group.broadcast(slice(y, 0, 6, 12), 0);
        }),
    ],
    'different calls together': [
      6 * size,
      (y, x) => {
        const z = mul(x, 3);
        together(() => {
          group.allGather(y, slice(x, 0, 0, 6));
          group.allReduce(slice(z.view([2, 3 * size]), 1, 0, 2));
          group.reduce(slice(z.view([2, 3 * size]), 1, 2, 3), root);
        });
        addInPlace(y, z);
      },
    ],
    'together, of tensors that are gone, or written where that is nothing to the call': [
      12,
      (y, x) => {
        const [z, w] = [mul(x, 3), mul(x, 5)];
        together(() => {
          scope(() => group.allReduce(mul(slice(x, 0, 0, 6), 3), { output: slice(y, 0, 6, 12) }));
          group.allReduce(slice(z.view([6, 2]), 1, 0, 1), { output: slice(y, 0, 0, 6).view([6, 1]) });
          fillInPlace(z, 7);
          group.allReduce(slice(w, 0, 0, 6));
          fillInPlace(slice(w, 0, 6, 12), 7);
        });
        addInPlace(y, add(z, w));
      },
    ],
    'nothing together': [6, () => together(() => {})],
    // Both parts of a flat tensor are written around the call, where each is its operand by itself.
    'allReduce from part to part': [
      12,
      (y) => {
        const [from, to] = [slice(y, 0, 0, 6), slice(y, 0, 6, 12)];
        fillInPlace(from, 3 + rank);
        group.allReduce(from, { output: to }).wait();
        fillInPlace(from, 7);
        addInPlace(from, to);
      },
    ],
    'reduceScatter to the part after it': [
      6 * size + 6,
      (y) => {
        const [from, to] = [slice(y, 0, 0, 6 * size), slice(y, 0, 6 * size, 6 * size + 6)];
        group.reduceScatter(to, from).wait();
        addInPlace(to, to);
      },
    ],
  };
  for (const [what, [length, call]] of Object.entries(calls)) {
    checkSame(what, [length], (x) => {
      const y = mul(x, 2);
      call(y, x);
      return [mul(y, 1), chain(x)];
    });
    // The same in a tensor from outside, which the next run finds as this one has left it.
    const [eager, replayed] = [inputOf(1, [length]), inputOf(1, [length])];
    const run = (y: Tensor) => (x: Tensor) => {
      addInPlace(y, x);
      call(y, x);
      return sum(y);
    };
    const compiled = compile(run(replayed));
    for (let round = 0; round < 3; round++) {
      const expected = scope(() => run(eager)(inputOf(round, [length])).toFlatArray());
      const given = scope(() => compiled(inputOf(round, [length])).toFlatArray());
      expectSame(what, [given, replayed.toFlatArray()], [expected, eager.toFlatArray()]);
    }
    compiled.dispose();
  }
}

/** Observers see each call, in its order. */
function checkObserved(): void {
  const step = compile((x: Tensor) =>
    add(allReduce(x, group), chain(allGather(x, group).view([size, 4])).view([size, 4])),
  );
  const seen: string[] = [];
  scope(() => void step(inputOf(0, [4])));
  const stop = observeOps({ before: (op) => void (op.effects && seen.push(op.name)) });
  const result = scope(() => step(inputOf(1, [4])).toFlatArray());
  stop();
  deepStrictEqual(seen, ['allReduce', 'allGather']);
  deepStrictEqual(
    result,
    scope(() => step(inputOf(1, [4])).toFlatArray()),
  );
  step.dispose();
}

checkOps();
checkOverlap();
checkWrites();
checkUnread();
checkGradients();
checkInPlace();
await checkGroups();
checkObserved();
const last = compile((x: Tensor) => allReduce(x, group));
for (let i = 0; i < 3; i++) scope(() => void last(inputOf(i, [4])));
group.barrier().wait();
group.dispose();
throws(() => last(inputOf(0, [4])), /used after it had been disposed/);
deepStrictEqual(nccl?.faults() ?? '', '');
ok(place !== 'gloo' || nccl === null);
console.log('all right');
