import { AdamW, type OptimizerState } from '@roofline/optim';
import { type Tensor, fromTypedArray, full, keep } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { CollectiveError } from '../../src/errors.ts';
import type { ProcessGroup } from '../../src/group/process-group.ts';
import { ShardedOptimizer } from '../../src/parallel/sharded-optimizer.ts';
import { LinkedRanks } from '../support/linked-ranks.ts';

const options = { learningRate: 0.1, weightDecay: 0.1 };
// The ranks' shares: the first, and the other two.
const shapes = [[6], [4], [2]];
const moreShapes = [...shapes, [3], [5]];
const makeParameters = (count = shapes.length) =>
  moreShapes.slice(0, count).map((shape, i) => keep(full(shape, i + 1)).requiresGrad_());
const groupsOf = (parameters: readonly Tensor[]) => [
  { parameters: parameters.slice(0, 1), betas: [0.5, 0.9] as const },
  { parameters: parameters.slice(1) },
];

function setGradients(parameters: readonly Tensor[], step: number): void {
  parameters.forEach((parameter, i) => {
    const values = Float32Array.from({ length: parameter.size }, (_, j) => Math.sin(step + i + j));
    parameter.grad = keep(fromTypedArray(values, parameter.shape));
  });
}

const valuesOf = (parameters: readonly Tensor[]) => parameters.map((each) => each.toFlatArray());
const plainOf = ({ tensors, metadata }: OptimizerState) => ({
  metadata,
  tensors: Object.fromEntries(Object.entries(tensors).map(([name, x]) => [name, x.toFlatArray()])),
});

const shard = (parameters: readonly Tensor[], group: ProcessGroup) =>
  new ShardedOptimizer(groupsOf(parameters), AdamW, group, options);
type Sharded = ReturnType<typeof shard>;

/** One optimizer over two ranks, each with parameters of its own, and one that is whole. */
class Both {
  readonly ranks = new LinkedRanks();
  readonly parameters: readonly Tensor[][];
  readonly optimizers: readonly Sharded[];
  readonly whole: AdamW;

  constructor(count = shapes.length, shardOf = shard) {
    this.parameters = [0, 1].map(() => makeParameters(count));
    const made: Sharded[] = [];
    const make = (rank: number) => {
      made[rank] = shardOf(this.parameters[rank]!, this.ranks.groups[rank]!);
    };
    this.together(make);
    this.optimizers = made;
    const parameters = makeParameters(count);
    let at = 0;
    const groups = made[0]!.groups.map(({ parameters: { length }, betas }) => ({
      ...{ parameters: parameters.slice(at, (at += length)), betas },
    }));
    this.whole = new AdamW(groups, options);
  }

  /** Lets both ranks do something; the second as soon as the first waits for it. */
  together(act: (rank: number) => void): void {
    let isBegun = false;
    this.ranks.meanwhile = () => {
      if (!isBegun) act(1);
      isBegun = true;
    };
    act(0);
    this.ranks.meanwhile();
  }

  step(step: number, change: (optimizer: { step(): void }) => void = (optimizer) => optimizer.step()): void {
    for (const parameters of [...this.parameters, this.whole.parameters()]) setGradients(parameters, step);
    this.together((rank) => change(this.optimizers[rank]!));
    change(this.whole);
  }

  /** What each rank's promise comes to; errors as they are. */
  all<T>(call: (optimizer: Sharded, rank: number) => Promise<T>): Promise<unknown[]> {
    return Promise.all(
      this.optimizers.map((each, rank) => call(each, rank).catch((error: unknown) => error)),
    );
  }

  expectEqual(): void {
    for (const parameters of this.parameters)
      expect(valuesOf(parameters)).toEqual(valuesOf(this.whole.parameters()));
  }
}

describe('an optimizer split over two ranks', () => {
  it('makes the steps of a whole one, each rank those of its share, with what changes between them', () => {
    const both = new Both();
    expect(both.optimizers.map((each) => each.ownParameters().map(({ size }) => size))).toEqual([
      [6],
      [4, 2],
    ]);
    both.step(1);
    both.expectEqual();
    for (const each of [...both.optimizers, both.whole]) each.learningRate = 0.05;
    for (const each of [...both.optimizers, both.whole])
      (each.groups[1] as { weightDecay: number }).weightDecay = 0;
    both.step(2);
    both.expectEqual();
    const [yes, no] = [full([], 1), full([], 0)];
    both.step(3, (optimizer) => (optimizer as AdamW).stepUnless(yes));
    both.expectEqual();
    both.step(4, (optimizer) => (optimizer as AdamW).stepUnless(no));
    both.expectEqual();
  });

  /**
   * A bucket has four elements of a rank, the last parameters first, and here both groups: 2 and 3 of the first rank with 4 of the
   * second, then 0 and 1.
   */
  const inBuckets = () => {
    const log: string[][] = [[], []];
    const both = new Both(5, (parameters, group) => {
      const told = log[group.rank]!;
      class Told extends AdamW {
        override step(onGroupUpdated: (group: number) => void): void {
          super.step((each) => {
            told.push(`updated ${this.groups[each]!.parameters.map((x) => parameters.indexOf(x)).join()}`);
            onGroupUpdated(each);
          });
        }
      }
      const { broadcast } = group;
      group.broadcast = (x, root) => {
        told.push(`sent ${parameters.indexOf(x)} from ${root}`);
        return broadcast.call(group, x, root);
      };
      const parts = [parameters.slice(0, 3), parameters.slice(3)] as const;
      const groups = [{ parameters: parts[0], betas: [0.5, 0.9] as const }, { parameters: parts[1] }];
      return new ShardedOptimizer(groups, Told, group, options, { bucketBytes: 16 });
    });
    return { both, log };
  };

  it('sends a bucket once all groups have updated what is theirs of it, and before the next one is updated', () => {
    const { both, log } = inBuckets();
    const owned = both.optimizers.map((each, rank) =>
      each.ownParameters().map((x) => both.parameters[rank]!.indexOf(x)),
    );
    expect(owned).toEqual([
      [2, 3, 0],
      [4, 1],
    ]);
    both.step(1);
    both.expectEqual();
    const first = ['sent 2 from 0', 'sent 3 from 0', 'sent 4 from 1'];
    const second = ['sent 0 from 0', 'sent 1 from 1'];
    expect(log).toEqual([
      ['updated 2', 'updated 3', ...first, 'updated 0', ...second],
      ['updated 4', ...first, 'updated 1', ...second],
    ]);
  });

  it('has the state of what it updates in another order as that of all parameters', async () => {
    const { both } = inBuckets();
    both.step(1);
    const expected = plainOf(both.whole.stateDict());
    const states = (await both.all((each) => each.stateDict())) as OptimizerState[];
    expect(states.map(plainOf)).toEqual([expected, expected]);
    for (const root of [undefined, 1]) {
      const { both: next } = inBuckets();
      next.step(1);
      next.step(2);
      next.whole.loadStateDict(both.whole.stateDict());
      const loaded = next.all((each, rank) =>
        root === undefined || root === rank
          ? each.loadStateDict(states[rank]!, { root })
          : each.loadStateDict(null, { root }),
      );
      expect(await loaded).toEqual([undefined, undefined]);
      next.step(3);
      next.expectEqual();
    }
  });

  class Another extends AdamW {}

  it.each([
    ['in other buckets, of 256 MiB where none are given', AdamW, { bucketBytes: 1 }, [2 ** 28, 1]],
    ['by an optimizer of another class', Another, {}, ['"AdamW', '"Another']],
  ] as const)('is refused where ranks update %s', (_, Optimizer, sending, values) => {
    const ranks = new LinkedRanks();
    const errors: unknown[] = [];
    const make = (rank: number) => {
      const [of, by] = rank === 0 ? [AdamW, {}] : [Optimizer, sending];
      try {
        errors[rank] = new ShardedOptimizer(makeParameters(), of, ranks.groups[rank]!, options, by);
      } catch (error) {
        errors[rank] = error;
      }
    };
    let isBegun = false;
    ranks.meanwhile = () => {
      if (!isBegun) make(1);
      isBegun = true;
    };
    make(0);
    expect(errors.every((error) => error instanceof CollectiveError)).toBe(true);
    for (const [rank, error] of errors.entries())
      expect((error as Error).message).toMatch(new RegExp(`"(optimizer|bucketBytes)":${values[rank]}\\b`));
  });

  it('has all that was sent once a step has returned', () => {
    const both = new Both();
    for (const parameters of both.parameters) setGradients(parameters, 1);
    both.ranks.meanwhile = () => {};
    expect(() => both.optimizers[0]!.step()).toThrow('which the other does not call');
  });

  it('gives its whole state to all ranks, or to one alone', async () => {
    const both = new Both();
    both.step(1);
    const expected = plainOf(both.whole.stateDict());
    const onAll = (await both.all((each) => each.stateDict())) as OptimizerState[];
    expect(onAll.map(plainOf)).toEqual([expected, expected]);
    for (const root of [0, 1]) {
      const states = (await both.all((each) => each.stateDict({ root }))) as (OptimizerState | null)[];
      expect(states.map((state) => state && plainOf(state))).toEqual(
        [0, 1].map((rank) => (rank === root ? expected : null)),
      );
    }
  });

  it('goes on from a state that all ranks have, or one', async () => {
    for (const root of [undefined, 0, 1]) {
      const [before, both] = [new Both(), new Both()];
      before.step(1);
      const state = before.whole.stateDict();
      both.whole.loadStateDict(before.whole.stateDict());
      const loaded = both.all((each, rank) =>
        each.loadStateDict(
          root === undefined || root === rank ? state : null,
          root === undefined ? {} : { root },
        ),
      );
      expect(() => both.optimizers[0]!.step()).toThrow('step: loadStateDict() is under way; await it first');
      expect(await loaded).toEqual([undefined, undefined]);
      both.step(2);
      both.expectEqual();
    }
  });

  it('goes on with the hyperparameters that are set while it loads', async () => {
    let meanwhile = () => {};
    class Told extends AdamW {
      override loadStateDict(state: OptimizerState): void {
        super.loadStateDict(state);
        meanwhile();
      }
    }
    const shardOf = (parameters: readonly Tensor[], group: ProcessGroup) =>
      new ShardedOptimizer(groupsOf(parameters), Told, group, options);
    const both = new Both(shapes.length, shardOf);
    both.step(1);
    const state = both.whole.stateDict();
    meanwhile = () => {
      for (const { groups } of [...both.optimizers, both.whole])
        for (const group of groups) (group as { weightDecay: number }).weightDecay = 0.7;
    };
    expect(await both.all((each) => each.loadStateDict(state))).toEqual([undefined, undefined]);
    both.step(2);
    both.expectEqual();
  });

  it('refuses on both ranks what one gives wrongly, and stays as it was', async () => {
    const both = new Both();
    both.step(1);
    const state = both.whole.stateDict();
    const expected = plainOf(state);
    const refusals = async (
      given: (rank: number) => OptimizerState | null,
      options: { root?: number } = {},
    ): Promise<string[]> => {
      const errors = await both.all((each, rank) => each.loadStateDict(given(rank), options));
      return errors.map((error) => `${error instanceof CollectiveError} ${(error as Error).message}`);
    };
    const none = await refusals((rank) => (rank === 1 ? null : state));
    expect(none[1]).toBe('false ShardedOptimizer.loadStateDict: rank 7 must give the state, not null.');
    expect(none[0]).toMatch(
      /^true .*the state does not fit on rank 7: .*rank 7 must give the state, not null/,
    );
    const surplus = await refusals(() => state, { root: 0 });
    expect(surplus[1]).toBe(
      'false ShardedOptimizer.loadStateDict: rank 7 must give null: rank 4 has the state.',
    );
    const elsewhere = await refusals(() => state, { root: 2 });
    for (const message of elsewhere) expect(message).toMatch(/^false ShardedOptimizer.loadStateDict: .*root/);
    const noText = await refusals((rank) => (rank === 0 ? ({ tensors: {} } as never) : state));
    expect(noText[0]).toMatch(/^false .*the state's metadata/);
    // Of the share of one rank alone.
    const wrong = { ...state, tensors: { ...state.tensors, 'exp_avg.0': full([3], 0) } };
    const ofShare = await refusals(() => wrong);
    expect(ofShare[0]).toMatch(/^false .*"exp_avg.0" is \[3\], its parameter \[6\]/);
    expect(ofShare[1]).toMatch(/^true .*does not fit on rank 4: /);
    const states = (await both.all((each) => each.stateDict())) as OptimizerState[];
    expect(states.map(plainOf)).toEqual([expected, expected]);
    both.step(2);
    both.expectEqual();
  });

  it('has ranks without parameters where there are fewer of these', async () => {
    const both = new Both(1);
    expect(both.optimizers.map((each) => each.ownParameters().length)).toEqual([1, 0]);
    both.step(1);
    both.expectEqual();
    const states = (await both.all((each) => each.stateDict())) as OptimizerState[];
    expect(states.map(plainOf)).toEqual([0, 1].map(() => plainOf(both.whole.stateDict())));
    expect(await both.all((each) => each.loadStateDict(states[0]!))).toEqual([undefined, undefined]);
    both.step(2);
    both.expectEqual();
  });

  it('is over once it is disposed; and takes the class of an optimizer', () => {
    const both = new Both();
    const [first] = both.optimizers;
    first!.dispose();
    first!.dispose();
    expect(() => first!.step()).toThrow(
      'ShardedOptimizer.step: the optimizer was used after it had been disposed',
    );
    for (const bucketBytes of [0, 0.5])
      expect(
        () => new ShardedOptimizer(makeParameters(), AdamW, both.ranks.groups[0]!, {}, { bucketBytes }),
      ).toThrow(/bucketBytes/);
    expect(() => new ShardedOptimizer([], {} as never, both.ranks.groups[0]!)).toThrow(
      'ShardedOptimizer: takes the class of an optimizer, such as AdamW',
    );
  });
});
