import { type Device, type Tensor, add, autocast, compile, noGrad, randn, sum } from '@roofline/tensor-core';
import type { CompilableKernel } from '@roofline/cuda';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { describe, expect, it, vi } from 'vitest';
import { type FlashAttentionOptions, flashAttention, flashAttentionKernels } from '../../src/index.ts';

const shape = [1, 2, 12, 16] as const;

const operands = (device: Device) =>
  [1, 2, 3].map((seed) => randn([...shape], { device, seed, requiresGrad: true })) as [
    Tensor,
    Tensor,
    Tensor,
  ];

const textOf = ({ source, defines }: CompilableKernel) => JSON.stringify([source.href, defines]);

describe.skipIf(!hostCompilerVersion())("the kernels of flash attention's backward pass", () => {
  /** A device, attention on it, and what is compiled ahead by then. */
  const attending = () => {
    const gpu = openEmulatedDevice();
    const compileAhead = vi.spyOn(gpu, 'compileAhead').mockReturnValue();
    const inputs = operands(gpu);
    const attend = (options: FlashAttentionOptions = {}) => flashAttention(...inputs, options).dispose();
    const ahead = () => compileAhead.mock.calls.map(([kernels]) => kernels.map(textOf));
    return { gpu, attend, ahead };
  };

  it('are begun once, before those of the forward pass are waited for, where a gradient is recorded', () => {
    const { gpu, attend, ahead } = attending();
    const begunAtLaunch: number[] = [];
    const run = gpu.run.bind(gpu);
    vi.spyOn(gpu, 'run').mockImplementation((...call) => {
      begunAtLaunch.push(ahead().length);
      run(...(call as Parameters<typeof run>));
    });
    noGrad(attend);
    attend();
    attend();
    expect(begunAtLaunch).toEqual([0, 1, 1]);
    attend({ causal: true });
    expect(ahead()).toHaveLength(2);
  });

  it('are those of the dtype that autocast gives its operands', () => {
    const { gpu, attend, ahead } = attending();
    attend();
    autocast('bfloat16', attend);
    const named = (dtype: 'float32' | 'bfloat16') =>
      flashAttentionKernels({ q: shape, k: shape, dtype }, gpu.facts).map(textOf);
    const [float32, bfloat16] = [named('float32'), named('bfloat16')];
    expect(ahead()).toHaveLength(2);
    expect(ahead()[0]!.every((kernel) => float32.includes(kernel) && !bfloat16.includes(kernel))).toBe(true);
    expect(ahead()[1]!.every((kernel) => bfloat16.includes(kernel) && !float32.includes(kernel))).toBe(true);
  });

  it('are no reason to call the same attention twice in a program', () => {
    const gpu = openEmulatedDevice();
    const inputs = operands(gpu);
    const run = compile(() => {
      const withoutGradient = noGrad(() => flashAttention(...inputs));
      for (const input of inputs) input.grad = null;
      const total = sum(add(withoutGradient, flashAttention(...inputs)));
      total.backward();
      return total.detach();
    });
    while (run.cache.hits === 0) run().dispose();
    expect(run.explain().at(-1)!.repeatedCalls).toBe(1);
  });
});
