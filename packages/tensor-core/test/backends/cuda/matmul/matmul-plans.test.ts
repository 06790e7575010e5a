import type { MatmulRequest } from '../../../../src/op/cuda-lowering.ts';
import { describe, expect, it } from 'vitest';
import type { LtMatmul, LtMatmulDescription } from '@roofline/cuda/parts';
import {
  MatmulPlans,
  alignmentOf,
  describeMatmul,
} from '../../../../src/backends/cuda/matmul/matmul-plans.ts';

const request: MatmulRequest = {
  ...{ m: 2, n: 3, k: 4, batch: 1, inputDType: 'float32', outputDType: 'float32' },
  ...{ a: 0x1000, b: 0x2000, d: 0x3000, transposeA: false, transposeB: false },
  ...{ pitchA: 4, pitchB: 3, pitchD: 3, batchStrideA: 0, batchStrideB: 0, batchStrideD: 0 },
  ...{ scale: 1 },
};

describe('describeMatmul', () => {
  it('swaps the operands, since a row-major matrix is its transpose column by column', () => {
    const { a, b, d, transposeA, transposeB } = describeMatmul(request, { allowTf32: false });
    expect(a).toMatchObject({ rows: 3, columns: 4, pitch: 3 });
    expect(b).toMatchObject({ rows: 4, columns: 2, pitch: 4 });
    expect(d).toMatchObject({ rows: 3, columns: 2, pitch: 3 });
    expect([transposeA, transposeB]).toEqual([false, false]);
  });

  it('keeps transposed operands as they are stored', () => {
    const { a, b, transposeA, transposeB } = describeMatmul(
      { ...request, transposeB: true, pitchB: 4 },
      { allowTf32: false },
    );
    expect(a).toMatchObject({ rows: 4, columns: 3, pitch: 4 });
    expect(b).toMatchObject({ rows: 4, columns: 2 });
    expect([transposeA, transposeB]).toEqual([true, false]);
  });

  it('computes in float32, with TF32 only if allowed, and in float64 for float64', () => {
    expect(describeMatmul(request, { allowTf32: false })).toMatchObject({ computeType: 68, scaleType: 0 });
    expect(describeMatmul(request, { allowTf32: true })).toMatchObject({ computeType: 77, scaleType: 0 });
    const low = { ...request, inputDType: 'bfloat16', outputDType: 'bfloat16' } as const;
    expect(describeMatmul(low, { allowTf32: true })).toMatchObject({ computeType: 68, a: { dataType: 14 } });
    const double = { ...request, inputDType: 'float64', outputDType: 'float64' } as const;
    expect(describeMatmul(double, { allowTf32: false })).toMatchObject({ computeType: 70, scaleType: 1 });
  });

  it('refuses integers', () => {
    expect(() => describeMatmul({ ...request, inputDType: 'int32' }, { allowTf32: false })).toThrow(
      /not int32/,
    );
  });

  it('describes the whole product: types, pitches, batches and alignments of each operand', () => {
    const whole: MatmulRequest = {
      ...{ m: 2, n: 3, k: 4, batch: 5, inputDType: 'bfloat16', outputDType: 'float32' },
      ...{ a: 0x1004, b: 0x2010, d: 0x3040, transposeA: true, transposeB: false },
      ...{ pitchA: 6, pitchB: 7, pitchD: 8, batchStrideA: 32, batchStrideB: 40, batchStrideD: 48 },
      ...{ scale: 1 },
    };
    const batch = 5;
    expect(describeMatmul(whole, { allowTf32: true })).toEqual({
      ...{ computeType: 68, scaleType: 0, transposeA: false, transposeB: true, workspaceBytes: 32 * 2 ** 20 },
      a: { dataType: 14, rows: 3, columns: 4, pitch: 7, batch, batchStride: 40 },
      b: { dataType: 14, rows: 2, columns: 4, pitch: 6, batch, batchStride: 32 },
      d: { dataType: 0, rows: 3, columns: 2, pitch: 8, batch, batchStride: 48 },
      alignments: { a: 16, b: 4, c: 64, d: 64 },
    });
  });
});

describe('products beside calls that take multiprocessors', () => {
  it('are described, and looked up, with how many they find free', () => {
    const free = { allowTf32: false, multiprocessors: 124 };
    expect(describeMatmul(request, free)).toEqual({
      ...describeMatmul(request, { allowTf32: false }),
      multiprocessors: 124,
    });
    const prepared: LtMatmulDescription[] = [];
    const plans = new MatmulPlans((description) => ({ desc: prepared.push(description) }) as LtMatmul);
    const descOf = (multiprocessors?: number) =>
      plans.find(request, { allowTf32: false, ...(multiprocessors && { multiprocessors }) }).desc;
    expect([undefined, 124, 66, 124, undefined].map(descOf)).toEqual([1, 2, 3, 2, 1]);
    expect(prepared.map(({ multiprocessors }) => multiprocessors)).toEqual([undefined, 124, 66]);
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
  const base: MatmulRequest = {
    ...{ m: 8, n: 8, k: 8, batch: 2, inputDType: 'float16', outputDType: 'float16' },
    ...{ a: 0x1000, b: 0x2000, d: 0x3000, transposeA: false, transposeB: false },
    ...{ pitchA: 8, pitchB: 8, pitchD: 8, batchStrideA: 64, batchStrideB: 64, batchStrideD: 64 },
    ...{ scale: 1 },
  };

  function makePlans() {
    const prepared: LtMatmulDescription[] = [];
    const plans = new MatmulPlans((description) => {
      prepared.push(description);
      return { desc: prepared.length } as LtMatmul;
    });
    return { prepared, plans };
  }

  // One part at a time, so that a key without it would find the plan of `base`.
  const parts: readonly (readonly [string, Partial<MatmulRequest>])[] = [
    ['m', { m: 9 }],
    ['n', { n: 9 }],
    ['k', { k: 9 }],
    ['batch', { batch: 3 }],
    ['inputDType', { inputDType: 'bfloat16' }],
    ['outputDType', { outputDType: 'float32' }],
    ['transposeA', { transposeA: true }],
    ['transposeB', { transposeB: true }],
    ['pitchA', { pitchA: 16 }],
    ['pitchB', { pitchB: 16 }],
    ['pitchD', { pitchD: 16 }],
    ['batchStrideA', { batchStrideA: 128 }],
    ['batchStrideB', { batchStrideB: 128 }],
    ['batchStrideD', { batchStrideD: 128 }],
    ['alignment of a', { a: 0x1010 }],
    ['alignment of b', { b: 0x2010 }],
    ['alignment of d', { d: 0x3010 }],
    ['alignment of c', { c: 0x3010 }],
    ['alignment of a to 128', { a: 0x1080 }],
  ];

  it.each(parts)('prepares again for another %s', (_, change) => {
    const { prepared, plans } = makePlans();
    const first = plans.find(base, { allowTf32: false });
    const other = plans.find({ ...base, ...change }, { allowTf32: false });
    expect(other).not.toBe(first);
    expect(plans.find(base, { allowTf32: false })).toBe(first);
    expect(plans.find({ ...base, ...change }, { allowTf32: false })).toBe(other);
    expect(prepared).toEqual([
      describeMatmul(base, { allowTf32: false }),
      describeMatmul({ ...base, ...change }, { allowTf32: false }),
    ]);
  });

  it('prepares again with TF32', () => {
    const { prepared, plans } = makePlans();
    const float32 = { ...base, inputDType: 'float32', outputDType: 'float32' } as const;
    const [exact, fast] = [
      plans.find(float32, { allowTf32: false }),
      plans.find(float32, { allowTf32: true }),
    ];
    expect(fast).not.toBe(exact);
    expect([plans.find(float32, { allowTf32: false }), plans.find(float32, { allowTf32: true })]).toEqual([
      exact,
      fast,
    ]);
    expect(prepared.map(({ computeType }) => computeType)).toEqual([68, 77]);
  });

  it('takes the same plan for other addresses of the same alignment, and another scale', () => {
    const { prepared, plans } = makePlans();
    const first = plans.find(base, { allowTf32: false });
    const moved = { a: base.a + 512, b: base.b + 256, d: base.d + 2 ** 40, scale: 2 };
    expect(plans.find({ ...base, ...moved }, { allowTf32: false })).toBe(first);
    expect(prepared).toHaveLength(1);
  });

  it('distinguishes all of the parts at once', () => {
    const { prepared, plans } = makePlans();
    const requests = [base, ...parts.map(([, change]) => ({ ...base, ...change }))];
    const found = requests.map((request) => plans.find(request, { allowTf32: false }).desc);
    expect(new Set(found).size).toBe(requests.length);
    expect(requests.map((request) => plans.find(request, { allowTf32: false }).desc)).toEqual(found);
    expect(prepared).toHaveLength(requests.length);
  });
});
