import { describe, expect, it } from 'vitest';
import { overfit } from '../../examples/overfit.ts';

describe('the overfit example', () => {
  it('brings the loss far below its start, and recites the text', () => {
    const { losses, recited, text } = overfit({ steps: 150 });
    expect(losses[0]).toBeGreaterThan(5);
    expect(losses.at(-1)).toBeLessThan(0.2);
    expect(recited.slice(0, 60)).toBe(text.slice(0, 60));
  });
});
