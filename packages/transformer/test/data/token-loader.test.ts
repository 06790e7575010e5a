import { writeFileSync } from 'node:fs';
import { type Tensor, device, scope } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import {
  TokenFile,
  TokenLoader,
  type TokenLoaderOptions,
  type TokenLoaderState,
  type TokenSource,
  byteTokens,
  byteWindows,
  writeTokens,
} from '../../src/index.ts';
import { temporaryFolder } from '../checkpoint/temporary-folder.ts';

const path = temporaryFolder();

/** Tokens 0, 1, 2...: each window says where it began. */
function counting(length: number): TokenSource {
  return {
    ...{ name: 'counting', length, vocabularySize: length, fingerprint: String(length) },
    read: (start, count) => Uint32Array.from({ length: count }, (_, i) => start + i),
  };
}

const rowsOf = (tensor: Tensor) => tensor.toArray() as number[][];

/** Where the windows of the next steps begin; each is checked to be one. */
function startsOf(loader: TokenLoader, steps: number): number[] {
  return Array.from({ length: steps }, () =>
    scope(() => {
      const { ids, targets } = loader.next();
      const [rows, next] = [rowsOf(ids), rowsOf(targets)];
      rows.forEach((row, i) => {
        expect(row).toEqual(row.map((_, j) => row[0]! + j));
        expect(next[i]).toEqual(row.map((token) => token + 1));
      });
      return rows.map((row) => row[0]!);
    }),
  ).flat();
}

const ascending = (values: readonly number[]) => values.toSorted((a, b) => a - b);
const range = (begin: number, end: number) => Array.from({ length: end - begin }, (_, i) => begin + i);
const loaderOf = (length: number, options: Partial<TokenLoaderOptions> = {}) =>
  new TokenLoader(counting(length), { batch: 4, contextLength: 5, ...options });

describe('a loader of tokens', () => {
  it('gives every window once in each of two epochs, in two orders', () => {
    const loader = loaderOf(45);
    expect(loader.windowsPerEpoch).toBe(40);
    const epochs = [startsOf(loader, 10), startsOf(loader, 10)];
    for (const epoch of epochs) expect(ascending(epoch)).toEqual(range(0, 40));
    expect(epochs[0]).not.toEqual(epochs[1]);
    expect(epochs[0]).not.toEqual(range(0, 40));
  });

  it('takes tokens of one window and the one after it, over and over', () => {
    expect(startsOf(loaderOf(6), 3)).toEqual(new Array(12).fill(0));
  });

  it.each([
    [0, 'train has 0 of the 0 of counting'],
    [
      5,
      'need 6 tokens, and train has 5 of the 5 of counting with validationShare 0. Take a shorter contextLength',
    ],
  ])('refuses %i tokens for windows of 5', (length, message) => {
    // Of no token the source itself has no vocabulary.
    const source = { ...counting(length), vocabularySize: 9 };
    expect(() => new TokenLoader(source, { batch: 1, contextLength: 5 })).toThrow(message);
  });

  it('reads the windows of byteWindows', () => {
    const text = 'The roof is what the hardware allows.';
    const loader = new TokenLoader(byteTokens(text), { batch: 3, contextLength: 8, seed: 7 });
    for (let step = 0; step < 20; step++) {
      const expected = byteWindows(text, { step, batch: 3, contextLength: 8, seed: 7 });
      const { ids, targets } = loader.next();
      expect([rowsOf(ids), rowsOf(targets)]).toEqual([rowsOf(expected.ids), rowsOf(expected.targets)]);
    }
  });

  it('keeps train and validation apart to the last token', () => {
    const [train, validation] = (['train', 'validation'] as const).map((split) =>
      loaderOf(60, { split, validationShare: 0.25 }),
    ) as [TokenLoader, TokenLoader];
    // Windows of 5 and a target: the last of train ends at 44, and validation begins at 45.
    expect(ascending(startsOf(train, 10))).toEqual(range(0, 40));
    expect(ascending([...new Set(startsOf(validation, 10))])).toEqual(range(45, 55));
  });

  it.each([
    [1, 1],
    [2, 4],
    [4, 4],
    [3, 6],
  ])('gives %i ranks parts of a batch of %i that are the whole together', (ranks, batch) => {
    const whole = startsOf(loaderOf(45, { batch }), 40);
    const parts = range(0, ranks).map((rank) => loaderOf(45, { batch, rank, ranks }));
    const joined = range(0, 40).flatMap(() => parts.flatMap((part) => startsOf(part, 1)));
    expect(joined).toEqual(whole);
    expect(ascending(joined.slice(0, 40))).toEqual(range(0, 40));
  });

  it('gives validation whole tokens of its share, and train the others', () => {
    const rangeOf = (split: 'train' | 'validation') =>
      loaderOf(45, { split, validationShare: 0.3, contextLength: 2 }).state().range;
    expect([rangeOf('train'), rangeOf('validation')]).toEqual([
      [0, 32],
      [32, 45],
    ]);
  });

  it.each<[Partial<TokenLoaderOptions>, string]>([
    [{ ranks: 3 }, 'batch 4 is of all 3 ranks together, and must be a multiple of that'],
    [{ ranks: 2, rank: 2 }, 'rank 2 is none of 2 ranks, which are 0 to 1'],
    [{ validationShare: 1 }, 'validationShare must be at least 0 and below 1, not 1'],
    [{ split: 'test' as never }, "split must be 'train' or 'validation', not 'test'"],
    [{ split: 'validation' }, 'validation has 0 of the 45 of counting with validationShare 0'],
  ])('refuses %o', (options, message) => {
    expect(() => loaderOf(45, options)).toThrow(message);
  });

  it('says so where a source gives fewer tokens than it has', () => {
    const source = { ...counting(45), read: () => [1, 2] };
    const loader = new TokenLoader(source, { batch: 1, contextLength: 5 });
    expect(() => loader.next()).toThrow(
      'of counting gave 2 tokens; a source gives as many tokens as it is asked',
    );
  });

  // In int32, they would be other tokens, or would be read from beyond the table of embeddings.
  it.each([1.5, NaN, -1, 45, 2 ** 32, '3', 3n, undefined])('refuses %o as a token of a source', (token) => {
    const read = (_: number, count: number) => Array.from({ length: count }, (_, i) => (i === 5 ? token : 1));
    const source = { ...counting(45), read: read as never };
    const loader = new TokenLoader(source, { batch: 1, contextLength: 5 });
    expect(() => loader.next()).toThrow(/token \d+ of counting is .*, not one of 0 to 44/);
  });

  it('takes the first and the last token of a vocabulary', () => {
    const source = {
      ...counting(45),
      read: (_: number, count: number) => [44, 0, 44, 0, 44, 0].slice(0, count),
    };
    const { ids, targets } = new TokenLoader(source, { batch: 1, contextLength: 5 }).next();
    expect([rowsOf(ids), rowsOf(targets)]).toEqual([[[44, 0, 44, 0, 44]], [[0, 44, 0, 44, 0]]]);
  });
});

describe('the place of a loader', () => {
  const throughJson = (state: TokenLoaderState) => JSON.parse(JSON.stringify(state)) as TokenLoaderState;

  it.each([0, 1, 7, 10, 25])('goes on after %i steps as if nothing had been', (steps) => {
    const undisturbed = startsOf(loaderOf(45), 40);
    const stopped = loaderOf(45);
    startsOf(stopped, steps);
    const resumed = loaderOf(45);
    startsOf(resumed, 3);
    resumed.prefetch();
    resumed.load(throughJson(stopped.state()));
    expect(startsOf(resumed, 40 - steps)).toEqual(undisturbed.slice(4 * steps));
  });

  it('goes on with the same batches on another number of ranks, and the same stream in other batches', () => {
    const undisturbed = startsOf(loaderOf(45), 20);
    const two = range(0, 2).map((rank) => loaderOf(45, { rank, ranks: 2 }));
    for (const loader of two) startsOf(loader, 5);
    const state = throughJson(two[0]!.state());
    expect(two[1]!.state()).toEqual(state);
    const four = range(0, 4).map((rank) => loaderOf(45, { rank, ranks: 4 }));
    for (const loader of four) loader.load(state);
    const joined = range(0, 15).flatMap(() => four.flatMap((loader) => startsOf(loader, 1)));
    expect(joined).toEqual(undisturbed.slice(20));
    const wider = loaderOf(45, { batch: 10 });
    wider.load(state);
    expect(startsOf(wider, 6)).toEqual(undisturbed.slice(20));
  });

  it.each<[string, TokenLoader]>([
    ['fingerprint', loaderOf(46)],
    ['seed', loaderOf(45, { seed: 1 })],
    ['contextLength', loaderOf(45, { contextLength: 4 })],
    ['range', loaderOf(45, { validationShare: 0.2 })],
  ])('is refused with another %s', (name, other) => {
    const loader = loaderOf(45);
    const expected = startsOf(loaderOf(45), 1);
    expect(() => loader.load(other.state())).toThrow(`TokenLoader.load: the state is of ${name} `);
    expect(startsOf(loader, 1)).toEqual(expected);
  });

  it('is refused in a file of other tokens', () => {
    const stateIn = (tokens: number[]) => {
      writeTokens(path('data.bin'), [tokens], { vocabularySize: 256 });
      return new TokenLoader(new TokenFile(path('data.bin')), { batch: 2, contextLength: 2 });
    };
    const before = stateIn([1, 2, 3, 4]).state();
    expect(() => stateIn([1, 2, 3, 5]).load(before)).toThrow('the state is of fingerprint 4 tokens of 256, ');
    stateIn([1, 2, 3, 4]).load(before);
  });
});

describe('a batch that is prefetched', () => {
  it('is the one that would have come, once', () => {
    const expected = startsOf(loaderOf(45), 20);
    const loader = loaderOf(45);
    const starts = range(0, 20).flatMap((step) => {
      const before = loader.state();
      for (let times = 0; times < step % 3; times++) loader.prefetch();
      expect(loader.state()).toEqual(before);
      return startsOf(loader, 1);
    });
    expect(starts).toEqual(expected);
  });

  it('lives on after the scope in which it was read, and ends with that in which it is used', () => {
    const loader = loaderOf(45);
    scope(() => loader.prefetch());
    const [ids] = scope(() => {
      const { ids } = loader.next();
      expect(rowsOf(ids)).toHaveLength(4);
      return [() => ids];
    });
    expect(() => ids!().toArray()).toThrow('dispose');
  });

  it('is freed with the loader, however often it was asked for', () => {
    const live = () => device('cpu').memoryStatistics().liveStorages;
    const [loader, before] = [loaderOf(45), live()];
    loader.prefetch();
    loader.prefetch();
    loader.dispose();
    loader.dispose();
    expect(live()).toBe(before);
    expect(startsOf(loader, 1)).toEqual(startsOf(loaderOf(45), 1));
  });

  it('passes on what is wrong with a file', () => {
    writeTokens(path('changed.bin'), [range(0, 100)], { vocabularySize: 256 });
    using file = new TokenFile(path('changed.bin'));
    const loader = new TokenLoader(file, { batch: 2, contextLength: 9 });
    loader.prefetch();
    writeFileSync(path('changed.bin'), 'other');
    expect(rowsOf(loader.next().ids)).toHaveLength(2);
    const state = loader.state();
    expect(() => loader.prefetch()).toThrow('was changed while it was read');
    expect(() => loader.next()).toThrow('was changed while it was read');
    expect(loader.state()).toEqual(state);
  });
});
