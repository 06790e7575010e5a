import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Block } from '../../src/memory/block.ts';
import { FreeBlocks } from '../../src/memory/free-blocks.ts';
import { MemoryPool } from '../../src/memory/memory-pool.ts';

const owner = new MemoryPool(
  'rounded',
  () => undefined,
  () => [],
).blocksOf({
  recordEvent: () => ({ dispose: () => undefined }),
  waitFor: () => undefined,
});

let address = 0;
const blockOf = (size: number) => new Block((address += 2 ** 20), size, true, owner);

/** The smallest block of at least `size`, the latest among equals. */
function bestOf(blocks: readonly Block[], size: number): Block | null {
  let best: Block | null = null;
  for (const block of blocks) {
    if (block.size >= size && (best === null || block.size <= best.size)) best = block;
  }
  return best;
}

describe('FreeBlocks beside a list', () => {
  const step = (sizes: fc.Arbitrary<number>) =>
    fc.oneof(
      { weight: 5, arbitrary: fc.record({ add: sizes }) },
      { weight: 3, arbitrary: fc.record({ take: sizes }) },
      { weight: 3, arbitrary: fc.record({ remove: fc.nat() }) },
    );

  it.each([
    ['few sizes', fc.integer({ min: 1, max: 4 }).map((i) => 512 * i)],
    ['many sizes', fc.integer({ min: 1, max: 1000 }).map((i) => 512 * i)],
  ])('holds and gives the same at every step, with %s', (_, sizes) => {
    fc.assert(
      fc.property(fc.array(step(sizes), { minLength: 200, maxLength: 300, size: 'max' }), (steps) => {
        const free = new FreeBlocks();
        const list: Block[] = [];
        const drop = (block: Block) => list.splice(list.indexOf(block), 1);
        for (const action of steps) {
          if ('add' in action) {
            const block = blockOf(action.add);
            free.add(block);
            list.push(block);
          } else if ('take' in action) {
            const expected = bestOf(list, action.take);
            expect(free.takeBest(action.take)).toBe(expected);
            if (expected) drop(expected);
          } else if (list.length > 0) {
            const block = list[action.remove % list.length]!;
            free.remove(block);
            drop(block);
            expect([block.freeAbove, block.freeBelow]).toEqual([null, null]);
          }
          const expected = [...list].reverse().sort((a, b) => a.size - b.size);
          const held = [...free];
          expect(held.length).toBe(expected.length);
          expect(held.every((block, i) => block === expected[i])).toBe(true);
        }
      }),
      { numRuns: 40 },
    );
  });
});
