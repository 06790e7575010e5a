import { expect, it } from 'vitest';
import { Linear } from '../../src/index.ts';
import { withoutDrawing } from '../../src/module/parameter.ts';

it('makes zeros where weights are read next, and draws again after, also where building fails', () => {
  const drawn = () => new Linear(2, 3, { seed: 1 }).weight.toFlatArray();
  const before = drawn();
  expect(withoutDrawing(drawn)).toEqual([0, 0, 0, 0, 0, 0]);
  expect(() => withoutDrawing(() => new Linear(0, 3))).toThrow(/inFeatures/);
  expect(drawn()).toEqual(before);
  expect(before).not.toContain(0);
});
