import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type PlacedPart,
  arenaBytes,
  fullestCall,
  gapsIn,
  planArena,
} from '../../../src/compile/cuda/arena-plan.ts';
import { ArenaWorkspaces } from '../../../src/compile/cuda/arena.ts';
import { fitIntoGaps, ordersToFit } from '../../../src/compile/cuda/first-fit.ts';
import { madeBytes } from '../../../src/compile/cuda/made-bytes.ts';
import { type SizedPart, longestFirst } from '../../../src/compile/cuda/sized-part.ts';
import type { Graph } from '../../../src/compile/graph/graph.ts';
import { stackParts } from '../../../src/compile/cuda/skyline.ts';

const calls = 12;

const part = fc
  .record({
    byteLength: fc.integer({ min: 0, max: 5000 }),
    first: fc.integer({ min: 0, max: calls - 1 }),
    length: fc.integer({ min: 1, max: calls }),
  })
  .map(({ byteLength, first, length }) => ({
    ...{ byteLength, first },
    last: Math.min(calls - 1, first + length - 1),
  }));

interface Extent {
  readonly offset: number;
  readonly byteLength: number;
}

function areApart(a: Extent, b: Extent): boolean {
  return a.offset + a.byteLength <= b.offset || b.offset + b.byteLength <= a.offset;
}

function areTogether(a: PlacedPart, b: PlacedPart): boolean {
  return a.first <= b.last && b.first <= a.last;
}

describe('planArena', () => {
  it('places parts that are needed at the same time apart, at multiples of 512', () => {
    fc.assert(
      fc.property(fc.array(part, { maxLength: 30 }), (parts) => {
        const placed = planArena(parts);
        expect(placed).toMatchObject(parts);
        for (const [i, a] of placed.entries()) {
          expect(a.offset % 512).toBe(0);
          expect(a.offset + a.byteLength).toBeLessThanOrEqual(arenaBytes(placed));
          for (const b of placed.slice(i + 1)) if (areTogether(a, b)) expect(areApart(a, b)).toBe(true);
        }
        expect(arenaBytes(placed)).toBeGreaterThanOrEqual(fullestCall(parts).bytes);
      }),
    );
  });

  it('takes no more than needed where parts come and go as in a stack', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 5000 }), { maxLength: calls }), (sizes) => {
        const parts = sizes.map((byteLength, i) => ({ byteLength, first: i, last: 2 * sizes.length - i }));
        expect(arenaBytes(planArena(parts))).toBe(fullestCall(parts).bytes);
      }),
    );
  });

  it('stacks parts where no order of first fits is as short', () => {
    const parts = [
      { byteLength: 1024, first: 3, last: 6 },
      { byteLength: 1024, first: 2, last: 5 },
      { byteLength: 1536, first: 0, last: 2 },
      { byteLength: 1536, first: 6, last: 6 },
      { byteLength: 1024, first: 3, last: 4 },
    ];
    const blocks = parts.map((part) => ({ ...part, bytes: part.byteLength }));
    const ends = [...ordersToFit(blocks, 3)].map((order) =>
      Math.max(...[...fitIntoGaps(order)].map(([{ bytes }, offset]) => offset + bytes)),
    );
    expect(Math.min(...ends)).toBe(3584);
    expect(arenaBytes(planArena(parts))).toBe(3072);
    expect(fullestCall(parts)).toEqual({ call: 3, bytes: 3072 });
  });

  it('reuses what is freed', () => {
    const parts = [0, 1, 2, 3].map((i) => ({ byteLength: 1000, first: 2 * i, last: 2 * i + 1 }));
    expect(planArena(parts).map(({ offset }) => offset)).toEqual([0, 0, 0, 0]);
    expect(arenaBytes(planArena([]))).toBe(0);
  });

  it('finds the fullest call', () => {
    const parts = [
      { byteLength: 512, first: 0, last: 3 },
      { byteLength: 1000, first: 2, last: 2 },
      { byteLength: 600, first: 3, last: 5 },
    ];
    expect(fullestCall(parts)).toEqual({ call: 2, bytes: 512 + 1024 });
    expect(fullestCall([])).toEqual({ call: 0, bytes: 0 });
  });
});

describe('stackParts', () => {
  it('places parts that are needed at the same time apart, none higher than all of them need', () => {
    fc.assert(
      fc.property(fc.array(part, { maxLength: 30 }), (parts) => {
        const blocks = parts.map(({ byteLength, ...rest }) => ({ ...rest, bytes: byteLength + 1 }));
        const placed = [...stackParts(blocks)].map(([{ bytes, first, last }, offset]) => ({
          ...{ byteLength: bytes, first, last, offset },
        }));
        expect(placed).toHaveLength(parts.length);
        const sum = blocks.reduce((total, { bytes }) => total + bytes, 0);
        for (const [i, a] of placed.entries()) {
          expect(a.offset).toBeGreaterThanOrEqual(0);
          expect(a.offset + a.byteLength).toBeLessThanOrEqual(sum);
          for (const b of placed.slice(i + 1)) if (areTogether(a, b)) expect(areApart(a, b)).toBe(true);
        }
      }),
    );
  });
});

/** Parts by their names, which say how many bytes each takes from which call to which. */
function named(...names: readonly string[]) {
  const parts = new Map(
    names.map((name) => {
      const [bytes, first, last] = name.split(/[@-]/).map(Number) as [number, number, number];
      return [{ bytes, first, last }, name];
    }),
  );
  return { parts: [...parts.keys()], nameOf: (sized: SizedPart) => parts.get(sized)! };
}

describe('ordersToFit', () => {
  it('tries what is there at the fullest call first, what stays until the end, and all by size', () => {
    const { parts, nameOf } = named('1@5-5', '2@1-3', '3@3-4', '4@2-5', '5@4-5', '6@0-2', '6@1-1', '6@0-0');
    const orders = [...ordersToFit(parts, 3)].map((order) => order.map(nameOf));
    expect(orders).toEqual([
      ['2@1-3', '4@2-5', '3@3-4', '6@0-2', '6@0-0', '6@1-1', '5@4-5', '1@5-5'],
      ['4@2-5', '3@3-4', '2@1-3', '6@0-2', '6@0-0', '6@1-1', '5@4-5', '1@5-5'],
      ['4@2-5', '5@4-5', '1@5-5', '6@0-2', '6@0-0', '6@1-1', '3@3-4', '2@1-3'],
      ['1@5-5', '5@4-5', '4@2-5', '3@3-4', '2@1-3', '6@0-2', '6@1-1', '6@0-0'],
      ['6@0-2', '6@0-0', '6@1-1', '5@4-5', '4@2-5', '3@3-4', '2@1-3', '1@5-5'],
    ]);
  });

  it('of those that end together, tries what begins first', () => {
    const { parts, nameOf } = named('4@3-5', '3@1-5', '2@0-5');
    const [, byEnd] = [...ordersToFit(parts, 3)];
    expect(byEnd!.map(nameOf)).toEqual(['2@0-5', '3@1-5', '4@3-5']);
  });
});

describe('ordersToFit and stackParts', () => {
  it('prefer what is needed for longer, where parts are of one size or end together', () => {
    const { parts, nameOf } = named('1@0-0', '1@1-3');
    expect([...ordersToFit(parts, 9)].at(-1)!.map(nameOf)).toEqual(['1@1-3', '1@0-0']);
    const stack = named('1@3-5', '1@0-5', '2@0-3', '1@4-4');
    const heights = [...stackParts(stack.parts)].map(([sized, height]) => [stack.nameOf(sized), height]);
    expect(heights).toEqual([['1@0-5', 0], ['1@3-5', 1], ['1@4-4', 2], ['2@0-3', 2]]); // prettier-ignore
  });
});

describe('fitIntoGaps', () => {
  it('fills a gap to the last byte, with what is needed when that is free', () => {
    const { parts, nameOf } = named('3@0-1', '2@0-9', '3@3-4', '1@4-6', '2@5-9', '1@0-2');
    const offsets = [...fitIntoGaps(parts)].map(([sized, offset]) => [nameOf(sized), offset]);
    expect(offsets).toEqual([['3@0-1', 0], ['2@0-9', 3], ['3@3-4', 0], ['1@4-6', 5], ['2@5-9', 0], ['1@0-2', 5]]); // prettier-ignore
  });
});

describe('longestFirst', () => {
  it('sorts by how long parts are needed, then by their size', () => {
    const { parts, nameOf } = named('9@0-1', '1@2-6', '2@0-4', '5@7-8');
    expect(parts.toSorted(longestFirst).map(nameOf)).toEqual(['2@0-4', '1@2-6', '9@0-1', '5@7-8']);
  });
});

describe('the workspaces of a call', () => {
  it('are apart, and in the smallest gap that has room', () => {
    const workspaces = new ArenaWorkspaces(
      () => [
        { offset: 0, byteLength: 2048 },
        { offset: 4096, byteLength: 1024 },
      ],
      10_000,
    );
    const taken = [700, 512, 1, 600, 1, 1].map((bytes) => workspaces.take(bytes)?.address ?? null);
    expect(taken).toEqual([14_096, 10_000, 10_512, 11_024, null, null]);
    expect(workspaces.asked).toEqual([700, 512, 1, 600, 1, 1]);
  });
});

describe('madeBytes', () => {
  it('counts what calls write of what the graph makes, once, without workspaces', () => {
    const storages = [
      { byteLength: 1, source: { kind: 'made' } },
      { byteLength: 2, source: { kind: 'captured' } },
      { byteLength: 4, source: { kind: 'made' }, isWorkspace: true },
      { byteLength: 8, source: { kind: 'made' } },
      { byteLength: 16, source: { kind: 'made' } },
    ];
    const calls = [[0, 1], [2, 3], [0]].map((numbers) => ({
      outputs: numbers.map((storage) => ({ storage })),
    }));
    expect(madeBytes({ storages, calls } as unknown as Graph)).toBe(1 + 8);
  });
});

describe('gapsIn', () => {
  it('gives everything that no call of a span needs', () => {
    fc.assert(
      fc.property(fc.array(part, { maxLength: 30 }), fc.nat(calls - 1), fc.nat(calls - 1), (parts, a, b) => {
        const span = { first: Math.min(a, b), last: Math.max(a, b) };
        const placed = planArena(parts).toSorted((x, y) => x.offset - y.offset);
        const bytes = arenaBytes(placed);
        const gaps = gapsIn(placed, span, bytes);
        const lying = placed.filter(({ first, last }) => first <= span.last && span.first <= last);
        for (const gap of gaps) {
          expect(gap.byteLength).toBeGreaterThan(0);
          expect(gap.offset % 512).toBe(0);
          for (const other of [...lying, ...gaps]) if (other !== gap) expect(areApart(gap, other)).toBe(true);
        }
        // Each 512 bytes are used or free.
        let covered = 0;
        for (let at = 0; at < bytes; at += 512) {
          const holds = ({ offset, byteLength }: { offset: number; byteLength: number }) =>
            offset <= at && at < offset + Math.max(512, Math.ceil(byteLength / 512) * 512);
          if (lying.some(holds) || gaps.some(holds)) covered += 512;
        }
        expect(covered).toBe(bytes);
      }),
    );
  });
});
