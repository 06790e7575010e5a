import { describe, expect, it } from 'vitest';
import { kernelVariants } from '../../src/launch/kernel-variants.ts';

const source = new URL('file:///elsewhere/kernels/k.cu');

describe('kernelVariants', () => {
  it('gives equal definitions one spec, and others another', () => {
    const kernel = kernelVariants(source, 'f', { x: 'pointer', n: 'int32' });
    const first = kernel({ A: 1, B: 'float' });
    expect(kernel({ A: 1, B: 'float' })).toBe(first);
    expect(first).toMatchObject({ name: 'f', parameters: 'pi', defines: { A: 1, B: 'float' } });
    expect(first.source).toBe(source);
    const others = [
      kernel({ A: 2, B: 'float' }),
      kernel({ A: 1, B: 'double' }),
      kernel({ A: '1', B: 'float' }),
    ];
    expect(new Set([first, ...others]).size).toBe(4);
    expect(kernel({ A: 1, B: 'float' })).toBe(first);
  });

  it('refuses calls that name other definitions, or in another order', () => {
    const kernel = kernelVariants(source, 'f', { x: 'pointer' });
    kernel({ A: 1, B: 2 });
    for (const defines of [{ B: 2, A: 1 }, { A: 1 }, { A: 1, B: 2, C: 3 }, { A: 1, C: 2 }, {}])
      expect(() => kernel(defines as Record<string, number>)).toThrow(
        /Kernel f: all its variants define A, B/,
      );
  });
});

it.each([
  ['the source', 'a URL', [undefined, 'kernel', {}]],
  ['the name', 'text', [source, undefined, {}]],
  [
    'each parameter',
    'one of pointer, int32, uint32, int64, float32, float64, struct',
    [source, 'kernel', { x: 'p' }],
  ],
] as const)('kernelVariants refuses %s that is not %s', (what, wanted, given) => {
  expect(() => kernelVariants(...(given as unknown as Parameters<typeof kernelVariants>))).toThrow(
    `kernelVariants: ${what} must be ${wanted}`,
  );
});
