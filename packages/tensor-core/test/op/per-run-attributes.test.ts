import { expect, it } from 'vitest';
import { perRunSourceOf } from '../../src/op/per-run-attributes.ts';
import { applyLive, apply, autocast, defineOp, observeOps, scope, tensor } from '../../src/index.ts';

interface Factor {
  readonly factor: number;
}

const scaled = defineOp<Factor>({
  name: 'scaled',
  autocast: 'lower',
  infer: ([x]) => [x!],
  scalars: ({ factor }) => [factor],
  variant: () => '',
  cuda: { kind: 'pointwise', expressions: () => ['a * s0'] },
  cpu: { kind: 'onnx', build: (graph, [x], _, { scalars }) => [graph.node('Mul', [x!, scalars[0]!])] },
});

function sourcesSeen(run: () => void): [string, (() => unknown) | null][] {
  const seen: [string, (() => unknown) | null][] = [];
  const end = observeOps({
    before: (op, _inputs, _outputs, attributes) => seen.push([op.name, perRunSourceOf(attributes)]),
  });
  try {
    scope(run);
  } finally {
    end();
  }
  return seen;
}

it('calls next once and shows it to observers of that op alone', () => {
  const x = tensor([1, 2]);
  let factor = 2;
  const next = () => ({ factor: factor++ });
  let values: number[] = [];
  const seen = sourcesSeen(() => {
    autocast('bfloat16', () => {
      values = applyLive(scaled, [x], next)[0]!.toFlatArray() as number[];
    });
    apply(scaled, [x], { factor: 1 });
  });
  expect(values).toEqual([2, 4]);
  expect(factor).toBe(3);
  expect(seen.map(([name]) => name)).toEqual(['cast', 'scaled', 'scaled']);
  expect(seen.map(([, source]) => source)).toEqual([null, next, null]);
});

it('forgets the source of an op that failed', () => {
  const x = tensor([1, 2]);
  const attributes = { factor: NaN };
  expect(() => applyLive(scaled, [x, 3 as never], () => attributes)).toThrow(/scaled/);
  expect(perRunSourceOf(attributes)).toBeNull();
  expect(() =>
    applyLive(scaled, [x], () => {
      throw new Error('no attributes');
    }),
  ).toThrow('no attributes');
});

it('refuses what is not a function', () => {
  expect(() => applyLive(scaled, [tensor([1])], 3 as never)).toThrow(/applyLive: next/);
});
