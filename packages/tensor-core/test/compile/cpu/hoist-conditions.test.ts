import { describe, expect, it } from 'vitest';
import type { DType } from '../../../src/index.ts';
import { hoistUpdates } from '../../../src/compile/cpu/hoist-updates.ts';
import type { Call, GraphStorage } from '../../../src/compile/graph/graph.ts';

type Kind = GraphStorage['source']['kind'];

interface Step {
  readonly name: string;
  readonly calls: readonly Call[];
}

const storages: GraphStorage[] = [];

/** The number of a new storage. */
function storage(kind: Kind, dtype: DType = 'float32'): number {
  return storages.push({ byteLength: 4, dtype, source: { kind } as GraphStorage['source'] }) - 1;
}

const call = (reads: readonly number[], writes: readonly number[], cpu: object = { kind: 'onnx' }) =>
  ({
    op: { cpu },
    inputs: reads.map((number) => ({ storage: number })),
    outputs: writes.map((number) => ({ storage: number })),
  }) as unknown as Call;

const step = (name: string, ...calls: readonly Call[]): Step => ({ name, calls });

/** The order of the steps' names where those called `update` are updates. */
const orderOf = (...steps: readonly Step[]) =>
  hoistUpdates(steps, storages, ({ name }) => name === 'update').map(({ name }) => name);

const [made, other, weight, table] = [
  storage('made'),
  storage('made'),
  storage('captured'),
  storage('captured'),
];
const argument = storage('argument');
const gradient = storage('gradient');
const ids = storage('argument', 'int64');
const inPlace = call([weight], [weight]);

describe('an update comes before what does not concern it', () => {
  it.each<[string, Call]>([
    ['another parameter', call([table], [made])],
    ['an argument of another dtype', call([ids], [made])],
    ['what runs in JavaScript', call([table], [made], { kind: 'host' })],
    ['what looks for nothing', call([table], [made], { kind: 'host', checksValues: false })],
  ])('%s', (_, earlier) => {
    expect(orderOf(step('first', earlier), step('update', inPlace))).toEqual(['update', 'first']);
  });

  it('of what the run makes, though it may lie in an argument or in a gradient', () => {
    for (const written of [argument, gradient])
      expect(
        orderOf(step('first', call([made], [other])), step('update', call([written], [written]))),
      ).toEqual(['update', 'first']);
  });
});

describe('an update stays behind', () => {
  const first = step('first', call([table], [made]));

  it.each<[string, Step]>([
    ['where it is none', step('another', inPlace)],
    ['where it writes what it does not read', step('update', call([weight], [other]))],
    ['where it writes nothing', step('update', call([weight], []))],
    ['where one of its outputs is new', step('update', call([weight], [weight, other]))],
    ['where one of its calls makes something', step('update', inPlace, call([weight], [other]))],
  ])('%s', (_, last) => expect(orderOf(first, last)).toEqual(['first', last.name]));

  it.each<[string, Call[], Call]>([
    ['a reader of an argument, which may be a view of it', [call([argument], [made])], inPlace],
    ['a reader of a gradient, which may be a view of it', [call([gradient], [made])], inPlace],
    [
      'a reader of a parameter, which an argument may be a view of',
      [call([weight], [made])],
      call([argument], [argument]),
    ],
    [
      'a reader of a parameter, which a gradient may be a view of',
      [call([weight], [made])],
      call([gradient], [gradient]),
    ],
    ['what makes the number that it subtracts', [call([table], [made])], call([weight, made], [weight])],
    [
      'one call of several that may throw',
      [call([table], [made]), call([table], [other], { kind: 'host', checksValues: true })],
      inPlace,
    ],
  ])('%s', (_, earlier, last) => {
    expect(orderOf(step('first', ...earlier), step('update', last))).toEqual(['first', 'update']);
  });
});
