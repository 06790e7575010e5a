import { describe, expect, it } from 'vitest';
import { emitRanges, isNsightListening } from '../../../src/backends/cuda/nvtx.ts';
import { range } from '../../../src/tensor/ranges/range.ts';

describe('NVTX', () => {
  it('pushes and pops each range, nested as they are, also when one throws', () => {
    const calls: string[] = [];
    const stop = emitRanges({
      nvtxRangePushA: (name) => calls.push(`push ${String(name)}`),
      nvtxRangePop: () => calls.push('pop'),
    });
    range('forward', () => range('attention.scores', () => {}));
    expect(() =>
      range('optimizer', () => {
        throw new Error('stop');
      }),
    ).toThrow('stop');
    stop();
    range('after', () => {});
    expect(calls).toEqual(['push forward', 'push attention.scores', 'pop', 'pop', 'push optimizer', 'pop']);
  });

  it('speaks only where Nsight listens', () => {
    expect(isNsightListening({})).toBe(false);
    expect(isNsightListening({ NVTX_INJECTION64_PATH: '/opt/nsys/libToolsInjection64.so' })).toBe(true);
  });
});
