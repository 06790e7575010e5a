import { type Device, device, scope } from '@roofline/tensor-core';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { attend, createOperands } from '../../../src/attention/operands.ts';
import { timeContenders } from '../../../src/benchmarks/flash/measure.ts';
import { flushedBytesOf } from '../../../src/benchmarks/flash/own-contender.ts';
import type { FlashCell, FlashSettings } from '../../../src/benchmarks/flash/parameters.ts';
import { flashResult, type FlashResult } from '../../../src/benchmarks/flash/result.ts';
import { torchPython } from '../../fixtures/torch.ts';

// This file is alone in a process: what other tests have dropped would be freed while memory is measured.

const cell: FlashCell = { batch: 1, heads: 2, headDimension: 8, sequence: 16, dtype: 'float32' };
const settings: FlashSettings = {
  attentions: ['flash', 'plain', 'tiled'],
  passes: ['forward', 'backward', 'both'],
  ...{ warmupMs: 0.01, repeatMs: 0.02, rounds: 2, seed: 0 },
  peer: null,
  peerAttentions: ['plain', 'compiled', 'flash', 'cudnn'],
};
const run = (where: Device, changes: Partial<FlashSettings> = {}) =>
  timeContenders(where, cell, { ...settings, ...changes }, () => {});
const statuses = ({ timed }: FlashResult) =>
  timed.map(({ side, attention, outcome }) => `${side} ${attention}: ${outcome.status}`);

describe('timeContenders', () => {
  it('samples every attention of ours in every pass and round, and leaves nothing behind', async () => {
    const heldBytes = device('cpu').allocatedBytes;
    const result = await run(device('cpu'));
    expect(flashResult.parse(JSON.parse(JSON.stringify(result)))).toEqual(result);
    expect(statuses(result)).toEqual(['ours flash: ok', 'ours plain: ok', 'ours tiled: ok']);
    for (const { outcome } of result.timed) {
      if (outcome.status !== 'ok') throw new Error(outcome.reason);
      expect(Object.keys(outcome.samplesMs)).toEqual(settings.passes);
      for (const samples of Object.values(outcome.samplesMs)) {
        expect(samples.length).toBeGreaterThanOrEqual(settings.rounds);
        expect(Math.min(...samples)).toBeGreaterThan(0);
      }
      expect(outcome.peakBytes).toBeGreaterThan(0);
    }
    expect(result).toMatchObject({ flushedBytes: 0, torch: null });
    expect(device('cpu').allocatedBytes).toBe(heldBytes);
  });

  it.skipIf(!hostCompilerVersion())('runs on the emulated GPU, where the cache is overwritten', async () => {
    const emulated = openEmulatedDevice();
    expect(flushedBytesOf(emulated)).toBeGreaterThanOrEqual(2 ** 28);
    const only: FlashSettings = { ...settings, attentions: ['flash'], passes: ['forward', 'both'] };
    // A GPU's cache is more than the CPU that plays it fills in a test.
    const result = await timeContenders(emulated, cell, only, () => {}, 4096);
    expect(statuses(result)).toEqual(['ours flash: ok']);
    expect(result.flushedBytes).toBe(4096);
  });

  it('lets queries see all keys, where it is asked for', async () => {
    const all = (where: FlashCell) =>
      scope(() => {
        using operands = createOperands(where, device('cpu'), 3);
        return ['plain', 'flash', 'tiled'].map((kind) =>
          attend(kind as 'plain', operands).toFlatArray(),
        ) as number[][];
      });
    const [full, causal] = [all({ ...cell, mask: 'full' }), all(cell)];
    const last = (values: number[]) => values.slice(-cell.headDimension);
    for (const values of full) values.forEach((value, i) => expect(value).toBeCloseTo(full[0]![i]!, 5));
    // The last query sees all keys anyway, the first one itself alone.
    last(full[0]!).forEach((value, i) => expect(value).toBeCloseTo(last(causal[0]!)[i]!, 5));
    expect(full[0]!.slice(0, 8)).not.toEqual(causal[0]!.slice(0, 8));
  });

  it('makes a row of an attention that runs out of memory', async () => {
    // A TiB of scores.
    const huge: FlashCell = { ...cell, sequence: 2 ** 18, heads: 4, headDimension: 1 };
    const onlyPlain: FlashSettings = { ...settings, attentions: ['plain'] };
    const result = await timeContenders(device('cpu'), huge, onlyPlain, () => {});
    expect(statuses(result)).toEqual(['ours plain: out-of-memory']);
    expect(result.timed[0]!.outcome).toMatchObject({ reason: expect.stringContaining('out of memory') });
  });

  describe('compared with PyTorch', () => {
    const peer = { name: 'torch' as const, version: '' };
    const withPython = (python: string) => {
      vi.stubEnv('ROOFLINE_PYTHON', python);
      onTestFinished(() => void vi.unstubAllEnvs());
    };

    it.skipIf(torchPython === null)('times what it has, and says of the rest why not', async () => {
      withPython(torchPython!.executable);
      const result = await run(device('cpu'), { attentions: ['flash'], peer });
      expect(result.torch).toMatchObject({ torch: torchPython!.torchVersion, device: 'cpu' });
      expect(statuses(result).slice(0, 2)).toEqual(['ours flash: ok', 'torch plain: ok']);
      expect(result.timed).toHaveLength(5);
      for (const { attention, outcome } of result.timed) {
        if (outcome.status === 'ok') {
          expect(Object.keys(outcome.samplesMs)).toEqual(settings.passes);
        } else {
          expect(['compiled', 'flash', 'cudnn']).toContain(attention);
          expect(outcome.reason).toMatch(/PyTorch/);
        }
      }
      // cuDNN is a library of GPUs.
      expect(result.timed.at(-1)!.outcome.status).toBe('not-available');
    });

    it('keeps ours where PyTorch does not start', async () => {
      withPython(process.execPath);
      const result = await run(device('cpu'), { attentions: ['flash'], peer, peerAttentions: ['plain'] });
      expect(statuses(result)).toEqual(['ours flash: ok', 'torch plain: failed']);
      expect(result.torch).toBeNull();
    });
  });
});
