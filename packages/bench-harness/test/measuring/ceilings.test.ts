import { describe, expect, it } from 'vitest';
import { floorMs } from '../../src/measuring/ceilings.ts';

const ceilings = { matmulFlopsPerSecond: { float32: 2e12, bfloat16: 8e12 }, copyBytesPerSecond: 4e11 };

describe('floorMs', () => {
  it('is the longer of arithmetic and traffic, phase by phase', () => {
    // 3 ms of arithmetic over 1 ms of traffic, then 0.5 ms over 2 ms.
    const phases = [
      { flops: 6e9, bytes: 4e8 },
      { flops: 1e9, bytes: 8e8 },
    ];
    expect(floorMs(phases, ceilings, 'float32')).toBeCloseTo(5, 12);
    expect(floorMs(phases, ceilings, 'bfloat16')).toBeCloseTo(1 + 2, 12);
    expect(floorMs(phases.slice(0, 1), ceilings, 'float32')).toBeCloseTo(3, 12);
  });

  it('asks for the ceiling of products only where there are operations', () => {
    const copiesAlone = { matmulFlopsPerSecond: {}, copyBytesPerSecond: 4e11 };
    expect(floorMs([{ flops: 0, bytes: 8e8 }], copiesAlone)).toBeCloseTo(2, 12);
    expect(() => floorMs([{ flops: 1, bytes: 8e8 }], ceilings)).toThrow(
      'floorMs: phases with flops need the dtype',
    );
  });

  it('is 0 for nothing, and unknown without the ceiling of the dtype', () => {
    expect(floorMs([], ceilings, 'float32')).toBe(0);
    expect(floorMs([{ flops: 1, bytes: 1 }], ceilings, 'float16')).toBeNull();
  });
});
