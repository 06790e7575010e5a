import type { MatmulRequest } from '../../../../src/op/cuda-lowering.ts';
import { describe, expect, it } from 'vitest';
import type { LtMatmul, LtMatmulDescription } from '../../../../src/devices/cuda/matmul/cublaslt.ts';
import {
  MatmulPlans,
  alignmentOf,
  describeMatmul,
} from '../../../../src/devices/cuda/matmul/matmul-plans.ts';

const request: MatmulRequest = {
  ...{ m: 2, n: 3, k: 4, batch: 1, inputDType: 'float32', outputDType: 'float32' },
  ...{ a: 0x1000, b: 0x2000, d: 0x3000, transposeA: false, transposeB: false },
  ...{ pitchA: 4, pitchB: 3, pitchD: 3, batchStrideA: 0, batchStrideB: 0, batchStrideD: 0 },
  ...{ scale: 1, accumulate: false },
};

describe('describeMatmul', () => {
  it('swaps the operands, since a row-major matrix is its transpose column by column', () => {
    const { a, b, d, transposeA, transposeB } = describeMatmul(request, false);
    expect(a).toMatchObject({ rows: 3, columns: 4, pitch: 3 });
    expect(b).toMatchObject({ rows: 4, columns: 2, pitch: 4 });
    expect(d).toMatchObject({ rows: 3, columns: 2, pitch: 3 });
    expect([transposeA, transposeB]).toEqual([false, false]);
  });

  it('keeps transposed operands as they are stored', () => {
    const { a, b, transposeA, transposeB } = describeMatmul(
      { ...request, transposeB: true, pitchB: 4 },
      false,
    );
    expect(a).toMatchObject({ rows: 4, columns: 3, pitch: 4 });
    expect(b).toMatchObject({ rows: 4, columns: 2 });
    expect([transposeA, transposeB]).toEqual([true, false]);
  });

  it('computes in float32, with TF32 only if allowed, and in float64 for float64', () => {
    expect(describeMatmul(request, false)).toMatchObject({ computeType: 68, scaleType: 0 });
    expect(describeMatmul(request, true)).toMatchObject({ computeType: 77, scaleType: 0 });
    const low = { ...request, inputDType: 'bfloat16', outputDType: 'bfloat16' } as const;
    expect(describeMatmul(low, true)).toMatchObject({ computeType: 68, a: { dataType: 14 } });
    const double = { ...request, inputDType: 'float64', outputDType: 'float64' } as const;
    expect(describeMatmul(double, false)).toMatchObject({ computeType: 70, scaleType: 1 });
  });

  it('refuses integers', () => {
    expect(() => describeMatmul({ ...request, inputDType: 'int32' }, false)).toThrow(/not int32/);
  });
});

describe('alignmentOf', () => {
  it('holds for every product of a batch', () => {
    expect(alignmentOf(0x1000, 0)).toBe(256);
    expect(alignmentOf(0x1000, 24)).toBe(8);
    expect(alignmentOf(0x1002, 256)).toBe(2);
  });
});

describe('MatmulPlans', () => {
  it('prepares once for each shape, layout, dtype, alignment and precision', () => {
    const prepared: LtMatmulDescription[] = [];
    const plans = new MatmulPlans((description) => {
      prepared.push(description);
      return { desc: prepared.length } as LtMatmul;
    });
    const variants: [MatmulRequest, boolean][] = [
      [request, false],
      [request, true],
      [{ ...request, m: 5 }, false],
      [{ ...request, pitchA: 8 }, false],
      [{ ...request, batch: 2 }, false],
      [{ ...request, transposeA: true }, false],
      [{ ...request, inputDType: 'float16', outputDType: 'float16' }, false],
      [{ ...request, a: 0x1004 }, false],
      [{ ...request, b: 0x2004 }, false],
    ];
    const first = variants.map(([variant, tf32]) => plans.find(variant, tf32).desc);
    expect(new Set(first).size).toBe(variants.length);
    const moved = variants.map(
      ([variant, tf32]) => plans.find({ ...variant, a: variant.a + 512, scale: 2 }, tf32).desc,
    );
    expect(moved).toEqual(first);
    expect(prepared).toHaveLength(variants.length);
    expect(prepared.at(-1)!.alignments).toEqual({ a: 4, b: 256, d: 256 });
  });
});
