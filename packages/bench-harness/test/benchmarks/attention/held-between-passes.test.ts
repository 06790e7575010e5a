import { expect, it } from 'vitest';
import { heldBetweenPasses } from '../../../src/benchmarks/attention/held-between-passes.ts';

const operand = (storage: number, shape: number[], source: 'made' | 'argument' = 'made') => ({
  ...{ storage, shape, source, dtype: 'float32' as const },
});

it('counts what the forward pass made and the backward pass reads, a storage once', () => {
  const [q, weights, scratch, gradient] = [
    operand(0, [4], 'argument'),
    operand(1, [8]),
    operand(2, [16]),
    operand(3, [4]),
  ];
  const calls = [
    { range: ['backward'], inputs: [], outputs: [operand(6, [4])] },
    { range: ['attention'], inputs: [q], outputs: [scratch] },
    { range: ['attention'], inputs: [scratch], outputs: [weights, operand(1, [2])] },
    { range: ['backward', 'attention'], inputs: [weights, q], outputs: [gradient] },
    { range: ['backward'], inputs: [gradient, weights], outputs: [operand(4, [64])] },
    { range: ['backward'], inputs: [operand(4, [64])], outputs: [operand(5, [64])] },
  ];
  expect(heldBetweenPasses(calls)).toBe(8 * 4);
});

it('is nothing where the backward pass makes again what it needs', () => {
  const q = operand(0, [4], 'captured' as never);
  expect(
    heldBetweenPasses([
      { range: [], inputs: [q], outputs: [operand(1, [4])] },
      { range: ['backward'], inputs: [q], outputs: [operand(2, [4])] },
    ]),
  ).toBe(0);
});
