import { describe, expect, it, onTestFinished } from 'vitest';
import { StepPeer, type PeerJob } from '../../src/peer/step-peer.ts';
import { torchPython } from '../fixtures/torch.ts';

const job: PeerJob = {
  config: { vocabularySize: 50, modelDimension: 16, feedForwardDimension: 32, layers: 1, heads: 2 },
  batch: 2,
  context: 8,
  mode: 'train-step',
  dtype: 'float32',
  attention: 'plain',
  device: 'cpu',
  seed: 0,
  threads: 1,
};

function startPeer(): StepPeer<'torch'> {
  const peer = new StepPeer('torch', torchPython!.executable, 1);
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

  it("names the library of PyTorch's products", async () => {
    const { blas } = await startPeer().prepare(job);
    // As in "libblas.so.3.11.0", "MKL" or "OpenBLAS 0.3.21, kernels for SkylakeX".
    expect(blas).toMatch(/^(lib\w*blas\S+|MKL|OpenBLAS [\d.]+\S*, kernels for \w+)$/);
  });

  it('profiles a step', async () => {
    const peer = startPeer();
    await peer.prepare(job);
    const { deviceMs, busyUs, strings, kernels } = await peer.profile();
    const names = kernels.name.map((name) => strings[name]!);
    const phasesOf = (op: string) =>
      new Set(names.flatMap((name, i) => (name === op ? [strings[kernels.phase[i]!]] : [])));
    expect(phasesOf('aten::mm')).toEqual(new Set(['forward', 'backward']));
    expect(phasesOf('aten::addcdiv_')).toEqual(new Set(['optimizer']));
    // One layer: four projections, three of the feed-forward network and the head; each twice again backward.
    expect(names.filter((name) => name === 'aten::mm')).toHaveLength(8 * 3);
    const sumUs = kernels.durationUs.reduce((sum, durationUs) => sum + durationUs, 0);
    expect(busyUs).toBeGreaterThan(0);
    expect(busyUs / 1000).toBeLessThanOrEqual(deviceMs);
    // Self times are counted in whole microseconds by older versions.
    expect(Math.abs(sumUs - busyUs)).toBeLessThan(names.length);
  });

  it.each([
    ['block', 'whole'],
    ['2', 'chunked'],
    ['none', 'chunked'],
  ])('saves memory by recompute %s and %s logits', async (recompute, logits) => {
    const peer = startPeer();
    const config = { ...job.config, layers: 3 };
    await peer.prepare({ ...job, config, recompute, logits });
    expect((await peer.run(2)).deviceMs).toHaveLength(2);
  });

  it('refuses policies that PyTorch does not have', async () => {
    await expect(startPeer().prepare({ ...job, recompute: 'recursive' })).rejects.toMatchObject({
      message: expect.stringContaining('does not halve blocks again'),
      code: 'NOT_AVAILABLE',
    });
    await expect(startPeer().prepare({ ...job, recompute: 'attention-kept' })).rejects.toMatchObject({
      message: expect.stringContaining('take --peer-attention sdpa'),
      code: 'NOT_AVAILABLE',
    });
  });

  it('refuses a whole graph on the CPU', async () => {
    await expect(startPeer().prepare({ ...job, execution: 'whole-graph' })).rejects.toMatchObject({
      message: expect.stringContaining('whole-graph captures a CUDA graph, which the CPU has not'),
      code: 'NOT_AVAILABLE',
    });
  });

  it('reports what fails inside PyTorch, and goes on', async () => {
    const peer = startPeer();
    await expect(peer.prepare({ ...job, device: 'nonsense' })).rejects.toThrow(/RuntimeError in PyTorch/);
    await peer.prepare({ ...job, mode: 'forward' });
    expect(Object.keys((await peer.run(1)).phasesMs)).toEqual(['forward']);
  });
});

it('reports that the peer ended', async () => {
  const peer = new StepPeer('torch', process.execPath, 1);
  await expect(peer.prepare(job)).rejects.toThrow('The PyTorch process ended unexpectedly');
});
