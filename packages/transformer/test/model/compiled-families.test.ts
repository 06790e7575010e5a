import { hostCompilerVersion } from '@roofline/cuda/testing';
import { type Device, device, noGrad, toDevice } from '@roofline/tensor-core';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { describe, expect, it } from 'vitest';
import { type ModelConfig, TransformerLM } from '../../src/index.ts';
import { expectSameBits, train } from '../small-training.ts';
import { idsOf } from '../toy-model.ts';
import { families } from './families.ts';

describe.each(Object.entries(families))('a model of the family of %s, compiled', (_, config) => {
  it.each(['float32', 'bfloat16'] as const)('trains as eager code does, bit by bit, in %s', (dtype) => {
    const [eager, compiled] = (['eager', 'compiled'] as const).map((execution) =>
      train(config, dtype, 'cpu', execution, 6),
    );
    expectSameBits(compiled!, eager!);
    expect(compiled!.replays).toBe(4);
  });

  it.each(['block', 'attention-kept', 'recursive'] as const)(
    'trains with recompute %s to the same bits',
    (recompute) => {
      const [kept, again] = [{}, { recompute }].map((savings) =>
        train(config, 'float32', 'cpu', 'eager', 3, {}, savings),
      );
      expectSameBits(again!, kept!);
    },
  );
});

// Each kernel takes the host's compiler a second.
describe.skipIf(hostCompilerVersion() === null)('on an emulated GPU', () => {
  const logitsOn = (config: ModelConfig, on: Device) =>
    noGrad(() =>
      new TransformerLM(config, { seed: 2, device: on }).forward(toDevice(idsOf([[1, 2, 3, 4, 5]]), on)),
    ).toFlatArray();

  it.each(['qwen3', 'gpt2', 'mistral with a window'])(
    'a model of the family of %s gives the logits of the CPU, and trains compiled as eager',
    (name) => {
      const config = families[name]!;
      const [cpu, gpu] = [device('cpu'), openEmulatedDevice()].map((on) => logitsOn(config, on));
      const largest = Math.max(...cpu!.map(Math.abs));
      gpu!.forEach((value, i) => expect(Math.abs(value - cpu![i]!)).toBeLessThan(2 ** -18 * largest));
      const [eager, compiled] = (['eager', 'compiled'] as const).map((execution) =>
        train(config, 'float32', openEmulatedDevice(), execution, 5),
      );
      expectSameBits(compiled!, eager!);
      expect(compiled!.replays).toBe(3);
    },
  );
});
