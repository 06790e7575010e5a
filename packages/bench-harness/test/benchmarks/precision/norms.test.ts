import { device } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { normErrors } from '../../../src/benchmarks/precision/norms.ts';
import { normParts } from '../../../src/benchmarks/precision/parameters.ts';

/** Half the distance of neighbours, relative. */
const rounding = { float16: 2 ** -11, bfloat16: 2 ** -8 };

describe.each(['float16', 'bfloat16'] as const)('norms in %s', (dtype) => {
  const errors = normErrors(device('cpu'), dtype, 0);
  const of = (part: (typeof normParts)[number]) => errors.filter((each) => each.part === part);

  it('are measured part by part at each magnitude', () => {
    expect(errors).toHaveLength(5 * 2 * normParts.length);
    expect(new Set(errors.map(({ offBy }) => offBy)).size).toBeGreaterThan(10);
  });

  it('are off by the rounding of their output alone where statistics are float32', () => {
    for (const { offBy } of of('output, statistics in float32')) {
      expect(offBy).toBeGreaterThan(0);
      expect(offBy).toBeLessThanOrEqual(rounding[dtype]);
    }
  });

  it('are further off where each op rounds, and lost where squares leave the range of the dtype', () => {
    for (const { magnitude, offBy } of of('squares'))
      expect(Number.isNaN(offBy)).toBe(dtype === 'float16' && magnitude >= 100);
    for (const { magnitude, offBy } of of('output')) {
      if (dtype === 'float16' && magnitude >= 100) expect(offBy).toBeGreaterThan(0.9);
      // Three roundings, of the centred input, the statistics and the product, and that of the mean.
      else expect(offBy).toBeLessThanOrEqual(4 * rounding[dtype]);
    }
  });
});
