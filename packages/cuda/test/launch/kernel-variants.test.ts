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

describe('arguments by name', () => {
  const kernel = kernelVariants(source, 'f', { x: 'pointer', rows: 'int64', places: 'struct' });
  const places = new Uint8Array(3);

  it('are a list in the order of the parameters', () => {
    expect(kernel.byName({ x: 4096, rows: 7, places })).toEqual([4096, 7, places]);
  });

  it.each([
    ['in another order', { rows: 7, x: 4096, places }],
    ['without one', { x: 4096, rows: 7 }],
    ['with another one', { x: 4096, rows: 7, places, columns: 3 }],
    ['of another name', { x: 4096, lines: 7, places }],
  ])('%s are refused', (_, values) => {
    expect(() => kernel.byName(values as unknown as Parameters<typeof kernel.byName>[0])).toThrow(
      `Kernel f takes x, rows, places, in this order, not ${Object.keys(values).join(', ')}.`,
    );
  });
});
