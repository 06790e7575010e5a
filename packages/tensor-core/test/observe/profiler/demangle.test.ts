import { describe, expect, it } from 'vitest';
import { demangle } from '../../../src/observe/profiler/demangle.ts';

describe('demangle', () => {
  it('gives the C++ name of a symbol', () => {
    expect(demangle('_ZN7cutlass6KernelI4GemmEEvNT_6ParamsE')).toBe(
      'void cutlass::Kernel<Gemm>(Gemm::Params)',
    );
  });

  it('leaves other names as they are', () => {
    expect(demangle('nvjet_hsh_128x256_64x4_1x2')).toBe('nvjet_hsh_128x256_64x4_1x2');
    expect(demangle('_Z not a symbol')).toBe('_Z not a symbol');
  });
});
