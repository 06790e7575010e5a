import { describe, expect, it } from 'vitest';
import {
  type Tensor,
  type Op,
  add,
  addInPlace,
  apply,
  cast,
  compile,
  copyInPlace,
  defineOp,
  empty,
  exp,
  matmul,
  mul,
  noGrad,
  ones,
  randn,
  scope,
  slice,
  softmax,
  sum,
  swiglu,
  transpose,
  view,
} from '../../../src/index.ts';
import { partsOf } from '../../../src/compile/cuda/arena.ts';
import { fullestCall } from '../../../src/compile/cuda/arena-plan.ts';
import { takenOver } from '../../../src/compile/cuda/in-place.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../src/testing.ts';
import { graphOf } from '../traced-graph.ts';

const [rows, columns] = [16, 16];
const bytes = rows * columns * 4;
const x = ones([rows, columns]);
const row = ones([1, columns]);
const given = ones([rows, columns]);

const traced = (fn: () => readonly Tensor[]) => graphOf(() => scope(() => noGrad(fn))).graph;

/** For each call, which input's memory its first output takes over; null for none. */
function inputsTakenOver(fn: () => readonly Tensor[]): (number | null)[] {
  const graph = traced(fn);
  const over = takenOver(graph);
  return graph.calls.map(({ inputs, outputs }) => {
    const from = over.get(outputs[0]!.storage);
    return from === undefined ? null : inputs.findIndex(({ storage }) => storage === from);
  });
}

describe('the memory of an input that is no longer needed', () => {
  it.each<[string, () => Tensor[], (number | null)[]]>([
    ['is taken over in a chain', () => [exp(exp(mul(x, 2)))], [null, 0, 0]],
    ['is taken over as a second operand', () => [mul(x, exp(x))], [null, 1]],
    ['is taken over once', () => [add(exp(x), mul(x, 2))], [null, null, 0]],
    ['is taken over beside a broadcast operand', () => [add(row, exp(x))], [null, 1]],
    [
      'is taken over by a result of more dimensions',
      () => [add(view(x, [1, rows, columns]), exp(x))],
      [null, 1],
    ],
  ])('%s', (_, fn, expected) => expect(inputsTakenOver(fn)).toEqual(expected));

  const again = (fn: (y: Tensor) => Tensor[]) => () => fn(exp(x));
  it.each<[string, () => Tensor[], (number | null)[]]>([
    ['somebody reads it behind', again((y) => [add(exp(y), y)]), [null, null, 0]],
    ['it is a result', again((y) => [exp(y), y]), [null, null]],
    ['it is given', () => [exp(x)], [null]],
    ['its elements are wider', again((y) => [cast(y, 'float64')]), [null, null]],
    ['its elements are of another type', again((y) => [cast(y, 'int32')]), [null, null]],
    ['it is broadcast', () => [add(x, exp(row))], [null, null]],
    ['only a row of it is broadcast', again((y) => [add(x, slice(y, 0, 0, 1))]), [null, null]],
    ['it is read in another order', again((y) => [exp(transpose(y))]), [null, null]],
    ['it is read in two orders', again((y) => [add(y, transpose(y))]), [null, null]],
    ['a part of it is read', again((y) => [exp(slice(y, 0, 0, 8))]), [null, null]],
    [
      'what is written was there before',
      again((y) => {
        const z = exp(y);
        addInPlace(y, z);
        return [y];
      }),
      [null, null, null],
    ],
    [
      'what is written is given',
      again((y) => {
        copyInPlace(given, y);
        return [];
      }),
      [null, null],
    ],
    [
      'a part is written',
      again((y) => {
        const z = empty([2 * rows, columns]);
        copyInPlace(slice(z, 0, 0, rows), y);
        return [z];
      }),
      [null, null],
    ],
    ['the op is not element-wise', again((y) => [softmax(y)]), [null, null]],
  ])('stays where %s', (_, fn, expected) => expect(inputsTakenOver(fn)).toEqual(expected));

  /** Two operands and two results, which may lie side by side. */
  const pair: Op<undefined> = defineOp({
    name: 'pair',
    autocast: 'none',
    infer: ([a, b]) => [a!, b!],
    cuda: { kind: 'pointwise', expressions: () => ['a + b', 'a * b'] },
    cpu: { kind: 'host', run: () => {} },
  });
  const halves = (y: Tensor): [Tensor, Tensor] => [slice(y, 0, 0, 8), slice(y, 0, 8)];
  /** What takes over the second of two, whose halves are read, in `z`. */
  const joint = (write: (y: Tensor, z: Tensor) => void) => () => {
    const [y, z] = [exp(x), empty([rows, columns])];
    write(y, z);
    return [z];
  };
  it.each<[string, number | null, () => Tensor[]]>([
    ['operands lie side by side', 0, joint((y, z) => apply(pair, halves(y), undefined, halves(z)))],
    [
      'they do so in another order',
      0,
      joint((y, z) => apply(pair, halves(y).toReversed(), undefined, halves(z))),
    ],
    [
      'a part of it is read, and that written',
      1,
      joint((y, z) => copyInPlace(slice(z, 0, 8), slice(y, 0, 8))),
    ],
    [
      'columns of it are read, and the same ones written',
      1,
      joint((y, z) => copyInPlace(slice(z, 1, 8), slice(y, 1, 8))),
    ],
    ['it is read twice', 0, again((y) => [mul(y, y)])],
    [
      'not where another part is written',
      null,
      joint((y, z) => copyInPlace(slice(z, 0, 8), slice(y, 0, 0, 8))),
    ],
    [
      'not where its columns are written as rows',
      null,
      joint((y, z) => apply(pair, halves(transpose(y)), undefined, halves(z))),
    ],
    ['not where its rows are written as columns', null, joint((y, z) => copyInPlace(transpose(z), y))],
    [
      'not where one of two parts is written to the same place elsewhere',
      null,
      joint((y, z) => apply(pair, halves(y), undefined, [halves(z)[0], halves(empty([rows, columns]))[1]])),
    ],
    [
      'not where one of two parts is written elsewhere',
      null,
      joint((y, z) => apply(pair, halves(y), undefined, [halves(z)[0], empty([8, columns])])),
    ],
  ])('is taken over by several parts, or a part, where %s', (_, expected, fn) =>
    expect(inputsTakenOver(fn).at(-1)).toBe(expected),
  );

  it('is taken over by one of two results', () => {
    const over = takenOver(traced(() => apply(pair, [exp(x), x], undefined)));
    expect(over.size).toBe(1);
    const both = takenOver(traced(() => apply(pair, [exp(x), mul(x, 2)], undefined)));
    expect(new Set(both.values()).size).toBe(2);
  });

  it('is one part of the arena with what takes it over', () => {
    const graph = traced(() => [exp(exp(exp(mul(x, 2))))]);
    expect(partsOf(graph)).toEqual([
      {
        numbers: [0, 1, 2, 3].map((i) => graph.calls[i]!.outputs[0]!.storage),
        byteLength: bytes,
        first: 0,
        last: 4,
      },
    ]);
    expect(fullestCall(partsOf(graph)).bytes).toBe(bytes);
  });
});

describe.skipIf(!hostCompilerVersion())('on the emulated GPU (needs g++)', () => {
  const device = openEmulatedDevice();

  it('calls that take memory over, by several outputs too, give what eager code gives, run after run', () => {
    const weights = [1, 2].map((seed) => randn([columns, 8], { seed, device, requiresGrad: true }));
    const input = randn([rows, columns], { seed: 3, device });
    // Products in between keep the element-wise ops from being fused.
    const step = (z: Tensor) => {
      const [gate, up] = weights.map((weight) => matmul(z, weight));
      const hidden = swiglu(gate!, up!);
      sum(matmul(hidden, transpose(hidden))).backward();
      return weights.map((weight) => {
        const gradient = mul(weight.grad!.detach(), 2);
        weight.grad!.dispose();
        weight.grad = null;
        return gradient;
      });
    };
    const values = (fn: typeof step) => scope(() => fn(input).map((gradient) => gradient.toFlatArray()));
    const expected = values(step);
    const compiled = compile(step);
    for (let run = 0; run < 4; run++) expect(values(compiled)).toEqual(expected);
    expect(compiled.cache.hits).toBeGreaterThan(1);
  });
});
