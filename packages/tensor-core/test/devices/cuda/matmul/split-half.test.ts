import fc from 'fast-check';
import koffi from 'koffi';
import { describe, expect, it } from 'vitest';
import * as t from '../../../../src/index.ts';
import { HostMemory } from '../../../../src/native/host-memory.ts';
import { kernelSource } from '../../../../src/package-root.ts';
import { hostCompilerVersion } from '../../../../src/testing/emulated-device.ts';
import { sampleNumbers } from '../../../op-cases/samples.ts';
import { openSplitHalfDevice } from './emulated-split-half.ts';

const blockBytes = 68;
const spec = { source: kernelSource('split_half.cu'), name: 'split_half', parameters: 'T' };

/** What split_half.cu left of one block of 64×64 or less. */
interface SplitBlock {
  /** 2^-s·(hi + 2^-11·lo) of each element. */
  readonly restored: Float64Array;
  /** 2^-s of each line. */
  readonly factors: number[];
  /** -s of them all, or 2^20. */
  readonly exponent: number;
  readonly isUniform: boolean;
  readonly isWide: boolean;
  readonly isSparse: boolean;
  readonly isFinite: boolean;
}

describe.skipIf(!hostCompilerVersion())('split_half, emulated', { timeout: 60_000 }, () => {
  const { device, context } = openSplitHalfDevice();

  /** Splits rows × columns values; a line is a column if `down`, else a row. */
  function split(values: Float32Array, rows: number, columns: number, down: boolean): SplitBlock {
    const pitch = Math.ceil(columns / 8) * 8;
    return t.scope(() => {
      const source = t.fromTypedArray(values, [rows * columns], { device });
      const planes = t.zeros([2 * rows * pitch], { dtype: 'float16', device });
      const exponents = t.zeros([1], { dtype: 'int32', device });
      const scales = t.zeros([blockBytes / 4], { dtype: 'int32', device });
      const parameters = new HostMemory(128);
      const pointers = [source, planes, exponents, scales].map((tensor) => tensor.address);
      pointers.forEach((pointer, i) => parameters.writeInt64(8 * i, pointer));
      parameters.words.set([rows, columns, columns, pitch, 1, Number(down)], 40 / 4);
      context.kernel(spec).launch([1, 1, 1], 256, 0, [parameters.bytes.subarray(0, 128)]);
      const parts = planes.toFlatArray();
      const record = new Uint8Array(koffi.view(pointers[3]!, blockBytes)).slice();
      const [lowest, highest, marks] = record;
      const isUniform = lowest === highest;
      const factors = Array.from(record.subarray(4), (factor) => 2 ** ((isUniform ? lowest! : factor) - 127));
      const restored = Float64Array.from(values, (_, at) => {
        const [row, column] = [Math.floor(at / columns), at % columns];
        const place = row * pitch + column;
        return factors[down ? column : row]! * (parts[place]! + parts[rows * pitch + place]! / 2048);
      });
      return {
        restored,
        factors,
        exponent: exponents.toFlatArray()[0]!,
        isUniform,
        isWide: (marks! & 1) !== 0,
        isSparse: (marks! & 2) !== 0,
        isFinite: (marks! & 4) === 0,
      };
    });
  }

  const block = (value: (row: number, column: number, sample: number) => number) => {
    const samples = sampleNumbers(64 * 64, [-1, 1], 3);
    return Float32Array.from(samples, (sample, at) => value(Math.floor(at / 64), at % 64, sample));
  };

  it('keeps 22 bits of every float, or marks the block', () => {
    const anyFloat = fc.oneof(
      fc.float({ noNaN: true, noDefaultInfinity: true }),
      fc.float({ min: -1, max: 1, noNaN: true }),
      fc.constantFrom(0, 2 ** -149, 2 ** -126, 2 ** -27, 2 ** -28, 2 ** -29, 3e38),
    );
    const lines = fc.array(fc.array(anyFloat, { minLength: 9, maxLength: 9 }), {
      minLength: 1,
      maxLength: 12,
    });
    fc.assert(
      fc.property(lines, fc.boolean(), (rows, down) => {
        const values = Float32Array.from(rows.flat());
        const { restored, isWide, isSparse, isFinite } = split(values, rows.length, 9, down);
        expect(isFinite).toBe(true);
        const lineOf = (at: number) => (down ? at % 9 : Math.floor(at / 9));
        const largest = new Map<number, number>();
        values.forEach((x, at) => {
          largest.set(lineOf(at), Math.max(largest.get(lineOf(at)) ?? 0, Math.abs(x)));
        });
        values.forEach((x, at) => {
          const lost = Math.abs(restored[at]! - x);
          const most = largest.get(lineOf(at))!;
          expect(lost).toBeLessThanOrEqual(Math.max(2 ** -22 * Math.abs(x), isWide ? 2 ** -50 * most : 0));
          if (!isSparse) expect(Math.abs(x)).toBeGreaterThanOrEqual(2 ** -22 * most);
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
        const { exponent, factors, isUniform, isWide } = split(values, 64, 64, down);
        expect([name, isUniform, isWide]).toEqual([name, true, false]);
        expect([name, 2 ** exponent]).toEqual([name, factors[0]]);
      }
    },
  );

  it('gives lines far apart scales of their own', () => {
    const rows = block((row, _column, x) => (x + 2) * 10 ** (row % 2 ? 10 : -10));
    const alongRows = split(rows, 64, 64, false);
    expect(alongRows).toMatchObject({ exponent: 2 ** 20, isUniform: false, isWide: false, isSparse: false });
    expect(alongRows.factors[1]! / alongRows.factors[0]!).toBeGreaterThan(1e19);
    expect(split(rows, 64, 64, true)).toMatchObject({ isUniform: true, isWide: true, isSparse: true });
  });

  it('counts neither what lies past the end of K nor lines past the end as zeros', () => {
    const values = Float32Array.from(sampleNumbers(5 * 9, [1, 2], 4));
    for (const down of [false, true]) {
      expect(split(values, 5, 9, down)).toMatchObject({ isUniform: true, isWide: false, isSparse: false });
    }
  });

  it('marks Inf and NaN and leaves zeros in the planes', () => {
    for (const odd of [Infinity, -Infinity, NaN]) {
      const values = block((row, column, x) => (row === 40 && column === 50 ? odd : x + 2));
      for (const down of [false, true]) {
        const { restored, exponent, isFinite } = split(values, 64, 64, down);
        expect(isFinite).toBe(false);
        expect(exponent).toBe(2 ** 20);
        expect(restored.every((x) => x === 0)).toBe(true);
      }
    }
  });
});
