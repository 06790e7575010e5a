import { describe, expect, it } from 'vitest';
import { editDistance, nearest, unknownChoice } from '../../src/cli/nearest.ts';

describe('nearest', () => {
  it.each([
    ['', 'abc', 3],
    ['kitten', 'sitting', 3],
    ['cdua', 'cuda', 1],
    ['same', 'same', 0],
  ])('the distance of %j and %j is %i', (a, b, distance) => {
    expect(editDistance(a, b)).toBe(distance);
  });

  it('finds what was probably meant, and nothing where nothing is near', () => {
    const sizes = ['tiny', 'small', 'medium', 'xl'];
    expect(nearest('smal', sizes)).toBe('small');
    expect(nearest('MEDIUM', sizes)).toBe('medium');
    expect(nearest('gigantic', sizes)).toBeUndefined();
  });

  it('names all choices', () => {
    expect(unknownChoice('size', 'smal', ['tiny', 'small']).message).toBe(
      "Unknown size 'smal'. Did you mean small? Choices: tiny, small.",
    );
  });
});
