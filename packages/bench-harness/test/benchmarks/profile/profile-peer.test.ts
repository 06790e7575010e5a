import { device } from '@roofline/tensor-core';
import { expect, it, onTestFinished, vi } from 'vitest';
import { profilePeer } from '../../../src/benchmarks/profile/peer/profile-peer.ts';
import { toyCell } from '../../fixtures/records.ts';

it('reports a PyTorch that fails, and does not throw', async () => {
  // A program that reads no requests.
  vi.stubEnv('ROOFLINE_PYTHON', process.execPath);
  onTestFinished(() => void vi.unstubAllEnvs());
  const settings = {
    ...{ warmup: 0, steps: 1, seed: 0, phase: 'all' as const, range: null },
    peer: { name: 'torch' as const, version: '2.0.0' },
  };
  const context = { settings, deviceLabel: 'cpu', progress: () => {} };
  expect(await profilePeer(toyCell, context, device('cpu'))).toMatchObject({
    status: 'failed',
    error: { name: 'PeerError', message: expect.stringContaining('ended unexpectedly') },
  });
});
