import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type PlacedPart,
  arenaBytes,
  fullestCall,
  gapsIn,
  planArena,
} from '../../../src/compile/cuda/arena-plan.ts';
import { fitIntoGaps, ordersToFit } from '../../../src/compile/cuda/first-fit.ts';
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
