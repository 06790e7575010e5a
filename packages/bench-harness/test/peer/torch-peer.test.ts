import { describe, expect, it, onTestFinished } from 'vitest';
import { TorchPeer, type PeerJob } from '../../src/peer/torch-peer.ts';
import { torchPython } from '../fixtures/torch.ts';

const job: PeerJob = {
  config: { vocabularySize: 50, modelDimension: 16, feedForwardDimension: 32, layers: 1, heads: 2 },
  batch: 2,
  context: 8,
  mode: 'train-step',
  dtype: 'float32',
  device: 'cpu',
  seed: 0,
  threads: 1,
};

function startPeer(): TorchPeer {
  const peer = new TorchPeer(torchPython!.executable, 1);
  onTestFinished(() => peer.close());
  return peer;
}

describe.skipIf(torchPython === null)('TorchPeer', () => {
  it('times blocks of steps and their phases', async () => {
    const peer = startPeer();
    expect(await peer.prepare(job)).toMatchObject({ torch: torchPython!.torchVersion, device: 'cpu' });
    for (const steps of [1, 3]) {
      const block = await peer.run(steps);
      expect(block.deviceMs).toHaveLength(steps);
      expect(Object.keys(block.phasesMs)).toEqual(['forward', 'backward', 'optimizer']);
      for (const samples of Object.values(block.phasesMs)) expect(samples).toHaveLength(steps);
      expect(Math.min(...block.wallMs)).toBeGreaterThan(0);
    }
    await peer.resetPeakMemory();
    expect(await peer.memory()).toEqual({ peakAllocatedBytes: null, peakReservedBytes: null });
  });

  it('tells what fails inside PyTorch, and goes on', async () => {
    const peer = startPeer();
    await expect(peer.prepare({ ...job, device: 'nonsense' })).rejects.toThrow(/RuntimeError in PyTorch/);
    await peer.prepare({ ...job, mode: 'forward' });
    expect(Object.keys((await peer.run(1)).phasesMs)).toEqual(['forward']);
  });
});

it('tells that the peer ended', async () => {
  const peer = new TorchPeer(process.execPath, 1);
  await expect(peer.prepare(job)).rejects.toThrow('The PyTorch process ended unexpectedly');
});
