import { execa } from 'execa';
import { describe, expect, it, onTestFinished } from 'vitest';
import { findPython } from '../../src/peer/find-python.ts';
import { StepPeer, type PeerJob } from '../../src/peer/step-peer.ts';

const python = process.env['ROOFLINE_PYTHON'] ?? 'python3';
const hasPython = (await execa(python, ['--version'], { reject: false })).exitCode === 0;
const jax = await findPython(['jax']).catch(() => null);

const job: PeerJob = {
  config: { vocabularySize: 50, modelDimension: 16, feedForwardDimension: 32, layers: 1, heads: 2 },
  ...{
    batch: 2,
    context: 8,
    mode: 'train-step',
    dtype: 'float32',
    attention: 'dot-product',
    execution: 'jit',
  },
  ...{ device: 'cpu', seed: 0, threads: 1 },
};

function startPeer(executable: string): StepPeer<'jax'> {
  const peer = new StepPeer('jax', executable, 1);
  onTestFinished(() => peer.close());
  return peer;
}

describe.skipIf(!hasPython)('the program of JAX', () => {
  it('refuses float16, whose loss it does not scale', async () => {
    await expect(startPeer(python).prepare({ ...job, dtype: 'float16' })).rejects.toThrow(
      'NotAvailable in JAX: float16 needs a scaled loss',
    );
  });

  it.skipIf(jax !== null)('says what to install where there is no JAX', async () => {
    await expect(startPeer(python).prepare(job)).rejects.toMatchObject({
      message: expect.stringContaining('python3 -m pip install "jax[cuda13]"'),
      code: 'NOT_AVAILABLE',
    });
  });

  it.skipIf(jax === null).each(['forward', 'forward-backward', 'train-step'])(
    'times %s step by step and back to back',
    async (mode) => {
      const peer = startPeer(jax!.executable);
      expect(await peer.prepare({ ...job, mode })).toMatchObject({ jax: jax!.versions[0], attention: 'xla' });
      const { wallMs, backToBackMs, loss } = await peer.run(3);
      expect(wallMs).toHaveLength(3);
      expect(backToBackMs).toHaveLength(3);
      if (mode === 'forward') expect(loss).toBeNull();
      else expect(Math.abs(loss! - Math.log(50))).toBeLessThan(1);
    },
  );
});
