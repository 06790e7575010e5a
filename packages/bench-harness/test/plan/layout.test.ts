import { describe, expect, it } from 'vitest';
import {
  batchObstacle,
  layoutsOf,
  obstacleOf,
  resized,
  sequencesDivided,
  shardedTensor,
  tensorParallel,
} from '../../src/plan/layout.ts';
import { setting, shape } from './toy-machine.ts';

const layoutNamed = (name: string, gpus: number, perNode = 8) =>
  layoutsOf(gpus, perNode).find((layout) => layout.name === name)!;

it('a layout grows along the axis that is divided over all devices', () => {
  expect(resized(layoutNamed('hybrid sharded', 64), 128)).toMatchObject({ replicate: 16, shard: 8 });
  expect(resized(layoutNamed('hybrid sharded', 64), 4)).toBeNull();
  expect(resized(layoutNamed('sharded × tensor 2', 64), 8)).toMatchObject({ shard: 4, tensor: 2 });
  expect(resized(layoutNamed('tensor parallel', 4), 2)).toMatchObject({ tensor: 2 });
  expect(resized(layoutNamed('sharded, sequences divided', 4), 16)).toMatchObject({ shard: 16, context: 16 });
  expect(resized(layoutNamed('sharded, sequences over 4', 64), 128)).toMatchObject({
    ...{ shard: 128, context: 4 },
  });
  expect(resized(layoutNamed('sharded, sequences over 4', 64), 2)).toBeNull();
  expect(resized(layoutNamed('one GPU', 1), 4)).toMatchObject({ replicate: 4, shard: 1, tensor: 1 });
});

it('a layout that is divided along several axes keeps all but the outermost', () => {
  const pairs = { ...tensorParallel(2), replicate: 3 };
  expect(resized(pairs, 8)).toEqual({ ...pairs, replicate: 4 });
  expect(resized(pairs, 5)).toBeNull();
  const ringOfPairs = { ...sequencesDivided(4), tensor: 2 };
  expect(resized(ringOfPairs, 16)).toEqual({ ...ringOfPairs, shard: 8, context: 8 });
  expect(resized(ringOfPairs, 3)).toBeNull();
});

describe('the layouts that are compared', () => {
  const everywhere = ['data parallel', 'ZeRO-1', 'fully sharded', 'tensor parallel'];
  const both = (ranks: number) => [`sharded × tensor ${ranks}`, `sharded, sequences over ${ranks}`];

  it.each([
    ['nodes of one', 4, 1, []],
    ['part of a node', 4, 8, both(2)],
    ['part of a node, of which four are no part', 6, 8, both(2)],
    ['a node', 8, 8, [...both(2), ...both(4)]],
    ['several nodes', 16, 4, ['hybrid sharded', ...both(2), ...both(4)]],
    ['a node and two GPUs of another', 10, 8, both(2)],
    ['a node and half of another', 12, 8, [...both(2), ...both(4)]],
  ])('in %s: those whose parts a node holds', (_, gpus, perNode, further) => {
    const names = layoutsOf(gpus, perNode).map(({ name }) => name);
    const all = [...everywhere, 'sharded, sequences divided', ...further];
    expect(names.toSorted()).toEqual(all.toSorted());
  });
});

describe('a layout is impossible', () => {
  const grouped = { ...setting, shape: { ...setting.shape, heads: 24, keyValueHeads: 6 } };

  it('where neither heads of keys divide the ranks nor ranks the heads', () => {
    expect([2, 3, 6, 12, 24].map((ranks) => obstacleOf(tensorParallel(ranks), evenly(grouped)))).toEqual(
      Array.from({ length: 5 }, () => null),
    );
    expect(obstacleOf(tensorParallel(4), evenly(grouped))).toBe(
      '6 heads of keys and values cannot be divided by 4, nor 4 by them',
    );
    expect(obstacleOf(tensorParallel(48), evenly(grouped))).toBe('24 heads cannot be divided by 48');
  });

  it('where ranks divide neither the feed-forward network nor the vocabulary', () => {
    const of = (changes: Partial<typeof shape>) =>
      obstacleOf(tensorParallel(4), { ...setting, shape: { ...shape, ...changes } });
    expect(of({})).toBeNull();
    expect(of({ feedForwardDimension: 34 })).toBe('a feed-forward width of 34 cannot be divided by 4');
    expect(of({ vocabularySize: 998 })).toBe('998 tokens cannot be divided by 4');
  });

  it('where sequences are not two chunks for each rank, or have windows', () => {
    expect(obstacleOf(sequencesDivided(4), setting)).toBeNull();
    expect(obstacleOf(sequencesDivided(8), setting)).toBe(
      'sequences of 8 tokens cannot be divided by 16, two chunks for each of 8',
    );
    const windows = (slidingWindow: number) => ({ ...setting, shape: { ...setting.shape, slidingWindow } });
    expect(obstacleOf(sequencesDivided(2), windows(8))).toBeNull();
    expect(obstacleOf(sequencesDivided(2), windows(7))).toBe(
      'a sliding window of 7 is shorter than the context of 8, and the ring knows none',
    );
    expect(obstacleOf(layoutNamed('fully sharded', 2), { ...windows(7), context: 9 })).toBeNull();
  });

  it('where there are fewer sequences than groups of ranks that share them', () => {
    const one = { ...setting, batch: 1 / 6 };
    expect(batchObstacle(sequencesDivided(6), one)).toBeNull();
    expect(batchObstacle(tensorParallel(6), one)).toBeNull();
    expect(batchObstacle(sequencesDivided(6, 2), one)).toBe('1 whole sequence cannot be divided by 3');
    expect(batchObstacle(shardedTensor(3, 2), { batch: 2 / 6 })).toBe(
      '2 whole sequences cannot be divided by 3',
    );
    expect(batchObstacle(shardedTensor(3, 2), { batch: 0.5 })).toBeNull();
  });
});

/** With a vocabulary and a feed-forward width that up to 48 ranks divide. */
function evenly(grouped: typeof setting): typeof setting {
  return { ...grouped, shape: { ...grouped.shape, vocabularySize: 480, feedForwardDimension: 96 } };
}
