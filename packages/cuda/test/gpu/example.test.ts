import { expect, it } from 'vitest';
import { printedByExample, runExample } from '../run-example.ts';

it("the README's first program runs on a GPU", () => {
  expect(runExample()).toBe(printedByExample);
});
