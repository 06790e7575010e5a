import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ArgumentError } from '../../src/errors.ts';
import { parameter } from '../../src/parameters/parameter.ts';
import { sweepOf } from '../../src/parameters/sweep.ts';

const cell = { mask: parameter(z.enum(['none', 'causal'])), size: parameter(z.int().positive()) };
const settings = { steps: parameter(z.int().positive()) };
const given = { mask: ['none', 'causal'], size: [1, 2], steps: 3 };

describe('sweepOf', () => {
  it('takes lists of what cells have, and one value of what they share', () => {
    const sweep = sweepOf({ cell, settings });
    expect(sweep.parameters.parse(given)).toEqual(given);
    expect(sweep.parameters.safeParse({ ...given, size: 1 }).success).toBe(false);
    expect(sweep.parameters.safeParse({ ...given, steps: [3] }).success).toBe(false);
  });

  it('makes a cell of every combination, of which the settings are no part', () => {
    const sweep = sweepOf({ cell, settings });
    const parameters = sweep.parameters.parse(given);
    expect(sweep.expand(parameters)).toEqual([
      { mask: 'none', size: 1 },
      { mask: 'none', size: 2 },
      { mask: 'causal', size: 1 },
      { mask: 'causal', size: 2 },
    ]);
    expect(sweep.settings(parameters)).toEqual({ steps: 3 });
  });

  it('changes the parameter that is named last fastest', () => {
    const sweep = sweepOf({ cell, settings, nested: ['size', 'mask'] });
    const sizes = sweep.expand(sweep.parameters.parse(given)).map(({ size }) => size);
    expect(sizes).toEqual([1, 1, 2, 2]);
  });

  it.each([[['size']], [['size', 'size']], [['size', 'mask', 'size']], [[]]] as const)(
    'refuses %j for the parameters of a cell, of which one would be in no cell or twice',
    (nested) => {
      expect(() => sweepOf({ cell, settings, nested })).toThrow(ArgumentError);
      expect(() => sweepOf({ cell, settings, nested })).toThrow('but a cell mask, size; name each once.');
    },
  );
});
