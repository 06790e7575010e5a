// Is alone in a process: a stand-in for NVRTC's library stays loaded.
import { type BeginBatch, compileAside, loadNvrtc } from '@roofline/cuda/parts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import { standInForNvrtc } from '../../../cuda/test/nvrtc/stand-in-for-nvrtc.ts';
import { openNoOpDevice } from '../lifetimes/no-op-kernels.ts';
import { compiledStep } from './compiled-step.ts';

describe.skipIf(!hostCompilerVersion())('kernels compiled aside (need gcc)', () => {
  beforeAll(standInForNvrtc);

  it('are those that a program waits for', () => {
    let count = 0;
    const begin = compileAside(2);
    const beginBatch: BeginBatch = (all, keep) => {
      count += all.length;
      return begin(all, keep);
    };
    expect(compiledStep(openNoOpDevice(beginBatch, loadNvrtc))).toEqual(compiledStep(openNoOpDevice()));
    expect(count).toBeGreaterThan(1);
  });
});
