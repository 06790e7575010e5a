import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import * as t from '../../../../src/index.ts';
import { HostMemory, ffi } from '@roofline/cuda/host';
import { kernelSource } from '../../../../src/op/kernel-arguments/kernel-source.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { sampleNumbers } from '../../../op-cases/support/samples.ts';
import { openSplitHalfDevice } from './emulated-split-half.ts';

const spec = { source: kernelSource('matmul/split_half.cu'), name: 'split_half', parameters: 'T' };
const operandBytes = 64;

type Side = 'A' | 'B';

/** What split_half.cu left of one block of 64×64 or less. */
interface SplitBlock {
  /** 2^-s·(hi + 2^-11·lo) of each element. */
  readonly restored: Float64Array;
  /** 2^-s of each line. */
  readonly factors: number[];
  readonly isUniform: boolean;
  /** Of the worst line, relative to its largest and second largest element: 2^(loss - 50) of it, or nothing if 0. */
  readonly losses: [number, number];
  /** Of the worst line: how many doublings beyond 16 its smallest and its second smallest element are away. */
  readonly ranges: [number, number];
}

describe.skipIf(!hostCompilerVersion())('split_half, emulated', () => {
  const { device, context } = openSplitHalfDevice();

  /** Splits rows × columns values of one side; a line is a column if `down`, else a row. */
  function split(
    values: Float32Array,
    rows: number,
    columns: number,
    down: boolean,
    side: Side = 'A',
  ): SplitBlock {
    const pitch = Math.ceil(columns / 8) * 8;
    return t.scope(() => {
      const source = t.fromTypedArray(values, [rows * columns], { device });
      const planes = t.zeros([2 * rows * pitch], { dtype: 'float16', device });
      const summaries = t.zeros([1], { dtype: 'int32', device });
      const factorBytes = t.zeros([64 / 4], { dtype: 'int32', device });
      const parameters = new HostMemory(2 * operandBytes);
      const start = side === 'A' ? 0 : operandBytes;
      const pointers = [source, planes, summaries, factorBytes].map((tensor) => tensor.address);
      pointers.forEach((pointer, i) => parameters.writeInt64(start + 8 * i, pointer));
      parameters.words.set([rows, columns, columns, pitch, 1, Number(down)], (start + 40) / 4);
      context.kernel(spec).launch([1, 1, 1], 256, 0, [parameters.bytes.subarray(0, 2 * operandBytes)]);
      const parts = planes.toFlatArray();
      const bytes = new Uint8Array(ffi().view(pointers[3]!, 64)).slice(0, down ? columns : rows);
      const factors = Array.from(bytes, (factor) => 2 ** (factor - 127));
      const restored = Float64Array.from(values, (_, at) => {
        const [row, column] = [Math.floor(at / columns), at % columns];
        const place = row * pitch + column;
        return factors[down ? column : row]! * (parts[place]! + parts[rows * pitch + place]! / 2048);
      });
      const summary = summaries.toFlatArray()[0]! >>> 0;
      const nibble = (shift: number) => (summary >>> shift) & 15;
      const [lowest, highest] = [summary & 255, (summary >>> 8) & 255];
      expect(lowest).toBeLessThanOrEqual(Math.min(...bytes));
      expect(highest).toBeGreaterThanOrEqual(Math.max(...bytes));
      return {
        restored,
        factors,
        isUniform: lowest === highest,
        losses: [nibble(16), nibble(20)],
        ranges: [nibble(24), nibble(28)],
      };
    });
  }

  /** Magnitudes of each line, in falling order. */
  function linesOf(values: Float32Array, columns: number, down: boolean): number[][] {
    const lines: number[][] = [];
    values.forEach((x, at) =>
      (lines[down ? at % columns : Math.floor(at / columns)] ??= []).push(Math.abs(x)),
    );
    return lines.map((line) => line.sort((x, y) => y - x));
  }

  const block = (value: (row: number, column: number, sample: number) => number) => {
    const samples = sampleNumbers(64 * 64, [-1, 1], 3);
    return Float32Array.from(samples, (sample, at) => value(Math.floor(at / 64), at % 64, sample));
  };

  it.each<Side>(['A', 'B'])('keeps 22 bits of every float, or says how much is lost: %s', (side) => {
    const anyFloat = fc.oneof(
      fc.float({ noNaN: true, noDefaultInfinity: true }),
      fc.float({ min: -1, max: 1, noNaN: true }),
      fc.constantFrom(0, 2 ** -149, 2 ** -126, 2 ** -27, 2 ** -28, 2 ** -29, 3e38),
    );
    const rows = fc.array(fc.array(anyFloat, { minLength: 9, maxLength: 9 }), {
      minLength: 1,
      maxLength: 12,
    });
    fc.assert(
      fc.property(rows, fc.boolean(), (rows, down) => {
        const values = Float32Array.from(rows.flat());
        const { restored, losses, ranges } = split(values, rows.length, 9, down, side);
        const lines = linesOf(values, 9, down);
        const lost = lines.map(() => 0);
        values.forEach((x, at) => {
          const error = Math.abs(restored[at]! - x);
          if (error > 2 ** -22 * Math.abs(x)) lost[down ? at % 9 : Math.floor(at / 9)]! += 2 * error;
        });
        lines.forEach((line, i) => {
          [line[0]!, line[1] ?? 0].forEach((element, which) => {
            const loss = losses[which]!;
            if (loss < 15) expect(lost[i]).toBeLessThanOrEqual(loss === 0 ? 0 : 2 ** (loss - 50) * element);
          });
          [line.at(-1)!, line.at(-2) ?? line[0]!].forEach((element, which) => {
            const range = ranges[which]!;
            if (range < 15) expect(line[0]).toBeLessThanOrEqual(2 ** (16 + range) * element);
          });
        });
      }),
      { numRuns: 200, seed: 3 },
    );
  });

  it.each([false, true])(
    'has one scale for ordinary data, however many zeros it holds (down: %s)',
    (down) => {
      const plain = (x: number) => x + Math.sign(x) * 1e-6;
      const ordinary = {
        samples: block((_row, _column, x) => plain(x)),
        'causal zeros': block((row, column, x) => (column <= row ? plain(x) : 0)),
        'zeros of ReLU': block((_row, _column, x) => Math.max(plain(x), 0)),
        'zero rows': block((row, _column, x) => (row % 7 ? 0 : plain(x))),
        zeros: block(() => 0),
        'tiny numbers': block((_row, _column, x) => plain(x) * 1e-38),
        denormals: block((_row, _column, x) => plain(x) * 1e-42),
      };
      for (const [name, values] of Object.entries(ordinary)) {
        const { losses, isUniform } = split(values, 64, 64, down);
        expect([name, isUniform, losses]).toEqual([name, true, [0, 0]]);
      }
    },
  );

  it('gives rows of A of very different magnitudes scales of their own, and loses nothing by them', () => {
    const rows = block((row, _column, x) => (x + 2) * 10 ** (row % 2 ? 10 : -10));
    const alongRows = split(rows, 64, 64, false);
    expect(alongRows).toMatchObject({ isUniform: false, losses: [0, 0], ranges: [0, 0] });
    expect(alongRows.factors[1]! / alongRows.factors[0]!).toBeGreaterThan(1e19);
    // Down the columns, half of each line is almost zero.
    expect(split(rows, 64, 64, true)).toMatchObject({ losses: [6, 6], ranges: [15, 15] });
  });

  it("keeps one scale for B where a few small elements are lost, which A's lines need not lose", () => {
    const tail = block((row, column, x) => (row === 3 && column === 5 ? 2 ** -29 : x + 2));
    expect(split(tail, 64, 64, false, 'B')).toMatchObject({
      isUniform: true,
      losses: [1, 1],
      ranges: [15, 0],
    });
    const far = block((row, _column, x) => (x + 2) * (row === 3 ? 2 ** -40 : 1));
    expect(split(far, 64, 64, false, 'B')).toMatchObject({ isUniform: false, losses: [0, 0] });
  });

  it('takes the scale of the block for lines of zeros, and for lines of B that lose little by it', () => {
    const zeros = block((row, _column, x) => (row === 5 ? 0 : (x + 2) * (row % 2 ? 2 ** -60 : 1)));
    const { factors } = split(zeros, 64, 64, false);
    expect([factors[5], factors[4], factors[7]]).toEqual([2 ** -13, 2 ** -13, 2 ** -73]);
    const little = block((row, column, x) => (row === 3 ? 2 ** (column === 5 ? -29 : -5) : x + 2));
    expect(split(little, 64, 64, false, 'B')).toMatchObject({ isUniform: true, losses: [7, 7] });
    expect(split(little, 64, 64, false, 'A')).toMatchObject({ isUniform: false, losses: [0, 0] });
  });

  it('counts lost elements up to the next power of two', () => {
    const tail = (count: number) =>
      block((row, column, x) => (row === 3 && column < count ? 2 ** -29 : x + 2));
    const losses = [1, 2, 3, 4, 5].map((count) => split(tail(count), 64, 64, false, 'B').losses[0]);
    expect(losses).toEqual([1, 2, 3, 3, 4]);
    // Where the largest is below 4, from 2^-27 on nothing is lost.
    const least = (value: number) => block((row, column, x) => (row === 3 && column === 5 ? value : x + 2));
    expect(split(least(2 ** -27), 64, 64, false, 'B').losses).toEqual([0, 0]);
    expect(split(least(2 ** -27 - 2 ** -51), 64, 64, false, 'B').losses).toEqual([1, 1]);
  });

  it('measures a range down to a denormal', () => {
    const values = block((row, column) => (row === 3 && column === 5 ? 2 ** -130 : 2 ** -105));
    expect(split(values, 64, 64, false).ranges).toEqual([10, 0]);
  });

  it('distinguishes a single small element or zero from several', () => {
    const small = (count: number, value: number) =>
      split(
        block((row, column, x) => (row === 7 && column < count ? value : x + 2)),
        64,
        64,
        false,
      ).ranges;
    expect(small(0, 0)).toEqual([0, 0]);
    expect(small(1, 2 ** -20)).toEqual([6, 0]);
    expect(small(2, 2 ** -20)).toEqual([6, 6]);
    expect(small(1, 0)).toEqual([15, 0]);
    expect(small(2, 0)).toEqual([15, 15]);
    // In threads of one warp, and of two.
    for (const [row, column] of [
      [7, 40],
      [40, 0],
    ]) {
      const two = block((i, j, x) =>
        (i === 7 && j === 0) || (i === row && j === column) ? 2 ** -20 : x + 2,
      );
      expect(split(two, 64, 64, false).ranges).toEqual([6, 6]);
    }
  });

  it('counts neither what lies past the end of K nor lines past the end as zeros', () => {
    const values = Float32Array.from(sampleNumbers(5 * 9, [1, 2], 4));
    for (const down of [false, true]) {
      expect(split(values, 5, 9, down)).toMatchObject({ isUniform: true, losses: [0, 0], ranges: [0, 0] });
    }
  });

  it('counts a denormal as lost where its last bit is', () => {
    const beside = (denormal: number) =>
      block((row, column) => (row === 7 && column === 3 ? denormal : 2 ** -99));
    const [lost, kept] = [beside((2 ** 21 + 1) * 2 ** -149), beside((2 ** 22 + 1) * 2 ** -149)];
    for (const side of ['A', 'B'] as const) {
      expect(split(lost, 64, 64, false, side).losses).toEqual([1, 1]);
      expect(split(kept, 64, 64, false, side).losses).toEqual([0, 0]);
    }
  });

  it('marks Inf and NaN and leaves zeros in the planes', () => {
    for (const odd of [Infinity, -Infinity, NaN]) {
      const values = block((row, column, x) => (row === 40 && column === 50 ? odd : x + 2));
      for (const down of [false, true]) {
        const { restored, losses } = split(values, 64, 64, down);
        expect(losses).toEqual([15, 15]);
        expect(restored.every((x) => x === 0)).toBe(true);
      }
    }
  });
});
