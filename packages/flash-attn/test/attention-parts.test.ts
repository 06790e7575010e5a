import { hostCompilerVersion } from '@roofline/cuda/testing';
import {
  type Device,
  type Tensor,
  add,
  cast,
  concat,
  device,
  div,
  exp,
  maximum,
  mul,
  noGrad,
  ones,
  randn,
  scope,
  slice,
  sub,
  sum,
  unsqueeze,
} from '@roofline/tensor-core';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { describe, expect, it } from 'vitest';
import { type AttentionPart, flashAttention, flashAttentionParts } from '../src/index.ts';

const settings = { causal: false, scale: 0.6 };

function joinedOf(a: AttentionPart, b: AttentionPart): AttentionPart {
  const largest = maximum(a.largest, b.largest);
  const [x, y] = [a, b].map((part) => mul(part.sum, exp(sub(part.largest, largest)))) as [Tensor, Tensor];
  const both = add(x, y);
  const share = ({ output }: AttentionPart, weight: Tensor) =>
    mul(cast(output, weight.dtype), unsqueeze(div(weight, both), 3));
  return { output: cast(add(share(a, x), share(b, y)), a.output.dtype), largest, sum: both };
}

function describeParts(name: string, deviceOf: () => Device, bounds: Readonly<Record<string, number>>): void {
  describe(`attention over parts of the keys, ${name}`, () => {
    it.each(Object.entries(bounds))('joined, is attention over all, in %s', (dtype, bound) => {
      const random = (heads: number, length: number, seed: number) =>
        cast(randn([2, heads, length, 8], { seed, device: deviceOf() }), dtype as 'float32');
      const [q, k, v] = [random(4, 9, 1), random(2, 12, 2), random(2, 12, 3)];
      const gradient = random(4, 9, 4);
      for (const x of [q, k, v]) x.requiresGrad_();
      const whole = flashAttention(q, k, v, settings);
      scope(() => sum(mul(whole, gradient)).backward());
      noGrad(() => {
        const parts = [
          [0, 5],
          [5, 12],
        ] as const;
        const keysOf = ([from, to]: readonly [number, number]) =>
          [slice(k, 2, from, to), slice(v, 2, from, to)] as const;
        const [first, second] = parts.map((part) =>
          flashAttentionParts.forward(q, ...keysOf(part), settings),
        );
        const joined = joinedOf(first!, second!);
        const backward = (part: (typeof parts)[number]) =>
          flashAttentionParts.backward(q, ...keysOf(part), joined, gradient, settings);
        const [a, b] = [backward(parts[0]), backward(parts[1])];
        const pairs = [
          [joined.output, whole],
          [add(a[0], b[0]), q.grad!],
          [concat([a[1], b[1]], 2), k.grad!],
          [concat([a[2], b[2]], 2), v.grad!],
        ] as const;
        for (const [ours, expected] of pairs) {
          const [numbers, others] = [ours.toFlatArray(), expected.toFlatArray()];
          const size = Math.max(...others.map(Math.abs));
          expect(size).toBeGreaterThan(0.1);
          for (const [i, value] of numbers.entries())
            expect(Math.abs(value - others[i]!)).toBeLessThanOrEqual(bound * size);
        }
      });
    });
  });
}

// Of sums of 12 keys or 36 queries: as many roundings. In low precision parts are rounded, and their sum.
describeParts('on the CPU', () => device('cpu'), { float64: 2 ** -46, float32: 2 ** -17, bfloat16: 2 ** -6 });
describe.skipIf(!hostCompilerVersion())('with g++', () => {
  const emulated = hostCompilerVersion() ? openEmulatedDevice() : null;
  describeParts('on the emulated GPU', () => emulated!, { float32: 2 ** -17, bfloat16: 2 ** -6 });
});

describe('parts of attention', () => {
  it('refuse operands and settings as flashAttention does', () => {
    const [q, k] = [ones([1, 2, 3, 4]), ones([1, 2, 3, 5])];
    expect(() => flashAttentionParts.forward(q, k, k, settings)).toThrow(
      /flashAttentionParts\.forward: q \[1, 2, 3, 4\].*same head dimension/,
    );
    const part = flashAttentionParts.forward(q, q, q, settings);
    expect(() => flashAttentionParts.backward(q, q, q, part, q, { causal: true, scale: NaN })).toThrow(
      /flashAttentionParts\.backward: scale must be a finite number/,
    );
  });
});
