import { expect, it } from 'vitest';
import { unknownChoice } from '../../src/cli/option-values.ts';

it.each([
  ['smal', ' Did you mean small?'],
  ['MEDIUM', ' Did you mean medium?'],
  ['gigantic', ''],
])('%s is answered with the nearest choice, if one is near, and all of them', (given, question) => {
  expect(unknownChoice('size', given, ['tiny', 'small', 'medium', 'xl']).message).toBe(
    `Unknown size '${given}'.${question} Choices: tiny, small, medium, xl.`,
  );
});
