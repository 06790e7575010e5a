import { type Device, type Tensor, device, ones, scope, sum } from '@roofline/tensor-core';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { describe, expect, it } from 'vitest';
import { collect } from '../../../../tooling/collect-garbage.ts';
import { flashAttention, flashAttentionWithLse, tiledAttention } from '../../src/index.ts';

const devices: readonly (readonly [string, Device])[] = [
  ['the CPU', device('cpu')],
  ...(hostCompilerVersion() ? [['the emulated GPU', openEmulatedDevice()] as const] : []),
];

describe.each(devices)('storages on %s', (_, where) => {
  const live = () => where.memoryStatistics().liveStorages;

  it('are only the output without a tape, and nothing once that is disposed', async () => {
    await collect();
    const before = live();
    const x = ones([1, 2, 9, 16], { device: where });
    const output = flashAttention(x, x, x, { causal: true });
    expect(live()).toBe(before + 2);
    output.dispose();
    const both = flashAttentionWithLse(x, x, x);
    expect(live()).toBe(before + 3);
    for (const tensor of [x, both.output, both.lse]) tensor.dispose();
    expect(live()).toBe(before);
  });

  it.each([
    ['flashAttention', (x: Tensor) => flashAttention(x, x, x, { causal: true })],
    [
      'tiledAttention',
      (x: Tensor) => tiledAttention(x, x, x, { causal: true, blockSize: { queries: 4, keys: 4 } }),
    ],
  ])('of %s are gone after backward, or with a graph that is dropped', async (name, attention) => {
    // The emulated GPU has no products with more than one leading dimension repeated.
    if (name === 'tiledAttention' && where.type !== 'cpu') return;
    await collect();
    const before = live();
    const x = ones([1, 2, 9, 16], { device: where, requiresGrad: true });
    for (let i = 0; i < 3; i++) {
      scope(() => sum(attention(x)).backward());
      scope(() => void attention(x));
    }
    expect(live()).toBe(before + 2);
    x.grad!.dispose();
    x.dispose();
    expect(live()).toBe(before);
  });

  it('are as before where a call is refused', () => {
    const before = live();
    scope(() => {
      const x = ones([1, 2, 9, 16], { device: where });
      expect(() => flashAttention(x, x, ones([1, 2, 8, 16], { device: where }))).toThrow(/one shape/);
    });
    expect(live()).toBe(before);
  });
});
