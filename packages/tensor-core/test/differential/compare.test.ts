import { describe, expect, it } from 'vitest';
import type { DType } from '../../src/index.ts';
import { ShapeError } from '../../src/index.ts';
import { compareElements, compareOutcomes, unitInTheLastPlace } from './compare.ts';
import { encode } from './programs/host-data.ts';
import type { Program, Rule } from './programs/program.ts';

const program: Program = {
  name: 'add',
  seed: 0,
  inputs: [],
  steps: [],
  rule: 'exact',
  terms: 1,
  exactAddends: false,
  aliasing: true,
  mutates: false,
  eitherZero: false,
  keepsFloat32: false,
};

/** Compares one element, `ours`, with PyTorch's and float64's. */
function compareOne(rule: Rule, dtype: DType, ours: number, torch: number, reference: number, noise = 0) {
  return compareElements({ terms: 1, eitherZero: false }, rule, encode(dtype, [ours]), {
    dtype,
    data: encode(dtype, [torch]),
    reference: Float64Array.of(reference),
    noise: Float64Array.of(noise),
  });
}

const ulp = 2 ** -23;

describe('the comparison with PyTorch', () => {
  it('knows the unit in the last place of each dtype', () => {
    expect(unitInTheLastPlace('float32', 1)).toBe(ulp);
    expect(unitInTheLastPlace('float32', -1.99)).toBe(ulp);
    expect(unitInTheLastPlace('float32', 0)).toBe(2 ** -149);
    expect(unitInTheLastPlace('float16', 3)).toBe(2 ** -9);
    expect(unitInTheLastPlace('bfloat16', 256)).toBe(2);
    expect(unitInTheLastPlace('float64', 2 ** -1074)).toBe(2 ** -1074);
  });

  it('wants the same bits of exact ops, but for NaN', () => {
    expect(compareOne('exact', 'float32', 1, 1, 1)).toBeNull();
    expect(compareOne('exact', 'float32', NaN, NaN, NaN)).toBeNull();
    expect(compareOne('exact', 'float32', 1 + ulp, 1, 1)).toContain('PyTorch 1');
    expect(compareOne('exact', 'float32', 0, -0, 0)).toContain('PyTorch -0');
    expect(compareOne('exact', 'float32', NaN, 1, 1)).not.toBeNull();
  });

  it('allows a rounded op three units where PyTorch is right, and twice its error where it is not', () => {
    expect(compareOne('rounded', 'float32', 1 + 3 * ulp, 1, 1)).toBeNull();
    expect(compareOne('rounded', 'float32', 1 + 4 * ulp, 1, 1)).not.toBeNull();
    expect(compareOne('rounded', 'float32', 1 + 4 * ulp, 1 - 2 * ulp, 1)).toBeNull();
    expect(compareOne('rounded', 'bfloat16', 1 + 2 ** -6, 1, 1)).toBeNull();
    expect(compareOne('rounded', 'bfloat16', 1 + 3 * 2 ** -7, 1, 1)).not.toBeNull();
  });

  it('allows a sum four times the noise of its roundings', () => {
    expect(compareOne('accumulated', 'float32', 1 + 2 ** -10, 1, 1)).not.toBeNull();
    expect(compareOne('accumulated', 'float32', 1 + 2 ** -10, 1, 1, 2 ** -12)).toBeNull();
  });

  it('takes what is not finite from PyTorch, unless float64 says that ours is right', () => {
    expect(compareOne('rounded', 'float32', Infinity, Infinity, 1e39)).toBeNull();
    expect(compareOne('rounded', 'float32', NaN, Infinity, 1e39)).not.toBeNull();
    expect(compareOne('rounded', 'float32', 5, NaN, 5)).toBeNull();
    expect(compareOne('rounded', 'float32', 6, NaN, 5)).not.toBeNull();
    expect(compareOne('accumulated', 'float32', 0, NaN, NaN, NaN)).not.toBeNull();
    // A sum that overflows part-way: its order decides the result.
    expect(compareOne('accumulated', 'float32', -Infinity, NaN, 5)).toBeNull();
    expect(compareOne('accumulated', 'float32', -Infinity, NaN, Infinity)).not.toBeNull();
    expect(compareOne('accumulated', 'float32', NaN, 5, 5)).not.toBeNull();
  });

  it('wants one of our errors where PyTorch throws, and nowhere else', () => {
    const outcome = { error: null, outputs: [], gradients: [] } as const;
    const refused = { error: 'RuntimeError: no' };
    expect(compareOutcomes(program, { error: new ShapeError('no') }, refused)).toBeNull();
    expect(compareOutcomes(program, { error: new ShapeError('no') }, outcome)?.kind).toBe('refuses');
    expect(compareOutcomes(program, { error: new TypeError('no') }, refused)?.kind).toBe('foreign error');
    expect(compareOutcomes(program, outcome, refused)?.kind).toBe('accepts');
  });

  it('sees another dtype, shape, memory, history, and a gradient that is missing', () => {
    const data = encode('float32', [1, 2]);
    const ours = { dtype: 'float32', shape: [2], data, requiresGrad: true, aliases: [0] } as const;
    const torch = { ...ours, reference: null, noise: null };
    const kindOf = (change: Partial<typeof torch> | { dtype: DType }) =>
      compareOutcomes(
        program,
        { error: null, outputs: [ours], gradients: [null] },
        { error: null, outputs: [{ ...torch, ...change } as typeof torch], gradients: [null] },
      )?.kind;
    expect(kindOf({})).toBeUndefined();
    expect(kindOf({ dtype: 'float64' })).toBe('dtype');
    expect(kindOf({ shape: [2, 1] as never })).toBe('shape');
    expect(kindOf({ aliases: [] as never })).toBe('aliasing');
    expect(kindOf({ requiresGrad: false as never })).toBe('requiresGrad');
    const withGradient = { error: null, outputs: [torch], gradients: [torch] } as const;
    const without = { error: null, outputs: [ours], gradients: [null] } as const;
    expect(compareOutcomes(program, without, withGradient)?.kind).toBe('gradient missing');
  });

  it('lets a gradient be NaN where the result has overflowed in low precision', () => {
    const tensor = (value: number) => ({
      ...({ dtype: 'float16', shape: [1], requiresGrad: true, aliases: [] as number[] } as const),
      data: encode('float16', [value]),
    });
    const torch = (value: number, exact: number) => ({
      ...tensor(value),
      ...{ reference: Float64Array.of(exact), noise: Float64Array.of(0) },
    });
    const kindOf = (result: number, exact: number) =>
      compareOutcomes(
        program,
        { error: null, outputs: [tensor(result)], gradients: [tensor(NaN)] },
        { error: null, outputs: [torch(result, exact)], gradients: [torch(0, 0)] },
      )?.kind;
    expect(kindOf(Infinity, 1e6)).toBeUndefined();
    expect(kindOf(Infinity, Infinity)).toBe('gradient');
    expect(kindOf(1, 1)).toBe('gradient');
  });
});
