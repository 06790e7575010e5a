import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import { type Tensor, compile } from '../../../src/index.ts';
import { scheduleSteps } from '../../../src/compile/cpu/schedule.ts';
import { graphOf } from '../traced-graph.ts';

const values = (x: Tensor) => x.toFlatArray();
const ids = (...numbers: number[]) => t.tensor(numbers, { dtype: 'int64' });

/** Its input doubled, in place, and the negative of that. */
const doubling = (name: string, chunked: boolean) =>
  t.defineOp<undefined>({
    name,
    autocast: 'none',
    infer: ([x]) => [x!, x!],
    mutates: [0],
    cuda: { kind: 'custom', launch() {} },
    cpu: {
      kind: 'onnx',
      chunked,
      build(graph, [x]) {
        const doubled = graph.node('Add', [x!, x!]);
        return [doubled, graph.node('Neg', [doubled])];
      },
    },
  });
const doublesInPlace = doubling('doublesInPlace', false);
const doublesByItself = doubling('doublesByItself', true);

const double = (op: typeof doublesInPlace, x: Tensor) => t.noGrad(() => t.apply(op, [x], undefined))[1]!;

/** What `step` gives and leaves in `total` and its argument in three calls, compiled; the same as eagerly. */
function expectAsEager(
  step: (x: Tensor, total: Tensor) => readonly Tensor[],
  x: () => Tensor,
  launches?: number,
) {
  const run = (wrap: (fn: (x: Tensor) => readonly Tensor[]) => (x: Tensor) => readonly Tensor[]) => {
    const total = t.tensor([1, 2, 3, 4]);
    const f = wrap((given) => step(given, total));
    return [0, 1, 2].map(() => {
      const given = x();
      return t.scope(() => [...f(given), given, total].map(values));
    });
  };
  let explained: t.CompileExplanation | undefined;
  const seen = run((fn) => {
    const f = compile(fn);
    return (given) => {
      const results = f(given);
      explained = f.explain()[0];
      return results;
    };
  });
  expect(seen).toEqual(run((fn) => fn));
  if (launches !== undefined) expect(explained!.launches).toBe(launches);
}

const four = () => t.tensor([5, 6, 7, 8]);
const both = ids(1, 0);
const rows = t.tensor([[1, 2], [3, 4]]); // prettier-ignore

describe('a compiled function on the CPU', () => {
  it('reads parts of what it has made', () => {
    expectAsEager((x) => {
      const y = t.mul(x, 2);
      const matrix = t.reshape(y, [2, 2]);
      return [t.exp(t.slice(y, 0, 1, 3)), t.add(t.select(matrix, 1, 1), t.select(matrix, 0, 0)), t.sum(y)];
    }, four, 1); // prettier-ignore
  });

  it('reads what is there of nothing', () => {
    expectAsEager((x) => {
      const none = t.slice(x, 0, 2, 2);
      const pairs = t.reshape(none, [0, 2]);
      return [t.mul(none, 2), t.sum(pairs, { dims: 0 }), t.concat([none, x]), t.add(t.sum(none), t.sum(x))];
    }, four); // prettier-ignore
  });

  it('writes in place what it has made by itself', () => {
    expectAsEager((x) => {
      const y = t.embedding(rows, both);
      const product = t.matmul(y, t.reshape(x, [2, 2]));
      const before = t.exp(y);
      t.copyInPlace(y, t.matmul(y, t.transpose(y)));
      return [y, t.mul(product, before)];
    }, four); // prettier-ignore
  });

  it.each([
    ['within a graph', doublesInPlace],
    ['by itself', doublesByItself],
  ])('writes in place with a second output, %s', (_, op) => {
    expectAsEager((x, total) => [t.add(x, total), double(op, x), double(op, total), t.mul(x, total)], four);
    expectAsEager((x, total) => [double(op, t.slice(total, 0, 1, 3)), t.mul(x, total)], four);
  });

  it('reads a parameter before what runs by itself writes it', () => {
    expectAsEager((x, total) => {
      const before = t.mul(total, x);
      const negated = double(doublesByItself, total);
      return [before, negated, t.mul(total, x)];
    }, four); // prettier-ignore
  });

  it('runs what does not depend on a graph before it, in as few graphs as that leaves', () => {
    expectAsEager((x) => [t.mul(t.reshape(t.exp(x), [2, 2]), t.embedding(rows, both))], four, 2);
    const swiglu = (x: Tensor, total: Tensor) => {
      t.addInPlace(x, t.exp(x));
      return [t.mul(t.swiglu(total, total), x)];
    };
    expectAsEager(swiglu, four, 2);
  });

  it.each<[string, (total: Tensor) => unknown]>([
    ['in place', (total) => t.addInPlace(total, total)],
    ['in place with a second output', (total) => double(doublesInPlace, total)],
  ])('has written %s before an id that is out of range', (_, write) => {
    const total = t.tensor([1, 2, 3, 4]);
    const f = compile((x: Tensor, at: Tensor) => {
      write(total);
      return t.mul(t.embedding(rows, at), t.reshape(x, [2, 2]));
    });
    for (let call = 0; call < 2; call++) f(four(), ids(0, 1));
    expect(() => f(four(), ids(0, 2))).toThrow(t.ShapeError);
    expect(values(total)).toEqual([8, 16, 24, 32]);
  });

  it('gives a later step nothing that no later step reads', () => {
    const at = ids(1, 0);
    const { graph } = graphOf(() => {
      const y = t.exp(t.mul(rows, 2));
      return [t.add(t.embedding(y, at), 1)];
    });
    const steps = scheduleSteps(graph);
    const written = steps.map(({ calls, segment }) => [calls.length, segment?.outputs.length ?? null]);
    expect(written).toEqual([[2, 1], [1, null], [1, 1]]); // prettier-ignore
  });
});
