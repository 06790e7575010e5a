import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { describe, expect, it } from 'vitest';
import { expectSameBits, train } from './small-training.ts';

/** `tiny` made as small as it goes: its kernels are few, and each takes the host's compiler a second. */
const config = {
  vocabularySize: 13,
  contextLength: 12,
  modelDimension: 8,
  feedForwardDimension: 16,
  layers: 2,
  heads: 4,
};

describe.skipIf(hostCompilerVersion() === null)('a model compiled on an emulated GPU', () => {
  it('trains for 20 steps as eager code does, bit by bit', () => {
    const [eager, compiled] = (['eager', 'compiled'] as const).map((execution) =>
      train(config, 'float32', openEmulatedDevice(), execution, 20),
    );
    expectSameBits(compiled!, eager!);
    expect(compiled!.replays).toBe(18);
  });

  it('trains to the same bits with all on branches that can be, in every order that their events allow', () => {
    const [eager, branched] = (['eager', 'compiled'] as const).map((execution) =>
      train(config, 'float32', openEmulatedDevice(), execution, 8, { branches: 'always' }),
    );
    expectSameBits(branched!, eager!);
    expect(branched!.replays).toBe(6);
  });
});
