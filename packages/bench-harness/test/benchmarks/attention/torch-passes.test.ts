import { device } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { attentionBenchmark } from '../../../src/benchmarks/attention/benchmark.ts';
import { attentionResult } from '../../../src/benchmarks/attention/result.ts';
import { torchAttentionOf } from '../../../src/benchmarks/attention/parameters.ts';
import { TorchPasses } from '../../../src/benchmarks/attention/torch-passes.ts';
import { PeerError } from '../../../src/peer/python-peer.ts';
import { attentionCell, attentionRecord, besideTorch } from '../../fixtures/attention-records.ts';

/** Answers as python/torch_attention.py does, or fails at one command. */
function toyPeer({ failsAt }: { failsAt?: string } = {}) {
  const asked: Record<string, unknown>[] = [];
  const answers: Record<string, (request: Record<string, unknown>) => object> = {
    prepare: () => ({ torch: '2.0', python: '3.12', device: 'Toy' }),
    release: () => ({}),
    time: ({ pass, count }) => ({
      deviceMs: Array(count).fill(pass === 'forward' ? 1 : 2),
      wallMs: Array(count).fill(3),
      beforeBackwardBytes: pass === 'forward' ? null : 100 + (count as number),
      peakAllocatedBytes: 200,
    }),
  };
  const request = async (asks: Record<string, unknown>) => {
    asked.push(asks);
    const command = String(asks['command']);
    if (command === failsAt) throw new PeerError('CUDA out of memory. Tried', 'OUT_OF_MEMORY');
    return answers[command]!(asks);
  };
  return { asked, peer: { request, close: async () => void asked.push({ command: 'close' }) } as never };
}

const start = (peer: never) =>
  TorchPasses.start('compiled', attentionCell, { warmup: 2, seed: 7 }, device('cpu'), peer);

describe("PyTorch's side of attention", () => {
  it('warms up, runs what it is asked for, and frees it', async () => {
    const { asked, peer } = toyPeer();
    const passes = await start(peer);
    await passes.time('forward', 2);
    await passes.time('backward', 2);
    await passes.time('backward', 1);
    expect(await passes.finish()).toEqual({
      ...{ status: 'ok', attention: 'compiled', torch: '2.0', python: '3.12', device: 'Toy' },
      forward: { deviceMs: [1, 1], wallMs: [3, 3] },
      backward: { deviceMs: [2, 2, 2], wallMs: [3, 3, 3] },
      memory: { beforeBackwardBytes: 102, peakAllocatedBytes: 200 },
    });
    expect(asked[0]).toMatchObject({
      command: 'prepare',
      heads: 1,
      sequence: 64,
      seed: 7,
      keepsGraph: false,
    });
    expect(asked[1]).toMatchObject({ command: 'time', attention: 'compiled', pass: 'backward', count: 2 });
    expect(asked.at(-1)).toEqual({ command: 'release' });
  });

  it.each(['prepare', 'time'])('fails at %s without an end to ours', async (failsAt) => {
    const { asked, peer } = toyPeer({ failsAt });
    const passes = await start(peer);
    await passes.time('forward', 1);
    expect(await passes.finish()).toMatchObject({ status: 'out-of-memory', error: { name: 'PeerError' } });
    expect(asked.at(-1)).toEqual({ command: 'close' });
    expect(asked.filter(({ command }) => command === failsAt)).toHaveLength(1);
  });

  it('is of the attention that runs as ours does', () => {
    const of = (attention: 'plain' | 'flash' | 'tiled', execution: 'eager' | 'compiled') =>
      torchAttentionOf({ ...attentionCell, attention, execution });
    expect([of('plain', 'eager'), of('plain', 'compiled')]).toEqual(['plain', 'compiled']);
    expect([of('flash', 'eager'), of('flash', 'compiled'), of('tiled', 'eager')]).toEqual([
      'flash',
      null,
      null,
    ]);
  });
});

describe('a report of attention next to PyTorch', () => {
  const records = [
    besideTorch(attentionRecord(), { forwardMs: 2, backwardMs: 1 }),
    besideTorch(attentionRecord({ sequence: 128 }), { forwardMs: 4, backwardMs: 8 }),
    besideTorch(attentionRecord({ sequence: 256 }), null),
  ];
  const report = attentionBenchmark.toReport(records);

  it('has the medians of both, their ratio, and what both hold', () => {
    const blocks = report.sections.flatMap((section) => section.blocks);
    const table = blocks.find((block) => block.kind === 'table' && block.id === 'beside-torch');
    expect(table).toMatchObject({
      rows: [
        {
          ...{ sequence: 64, peer: 'PyTorch plain', forwardMs: 1, peerForwardMs: 2, forwardRatio: 0.5 },
          ...{ backwardMs: 2, peerBackwardMs: 1, backwardRatio: 2, peerBeforeBackwardBytes: 2 ** 16 },
        },
        { sequence: 128, forwardRatio: 0.25, backwardRatio: 0.25 },
      ],
    });
    expect(report.summary.join()).toMatch(
      /Our attention \(plain\) takes \*\*0\.25×\*\* to \*\*0\.50×\*\* \(more than 1 in 0 of 2 cells\) the time of PyTorch plain forward, .* 1 of 2/,
    );
  });

  it('says why PyTorch has no time', () => {
    expect(JSON.stringify(report)).toContain('PyTorch could not run');
  });

  it('has no such table without a peer, and sweeps without one are of the same settings as before', () => {
    expect(JSON.stringify(attentionBenchmark.toReport([attentionRecord()]))).not.toContain('beside-torch');
    const asked = {
      attention: ['plain'],
      batch: [1],
      headDimension: [16],
      sequence: [16],
      dtype: ['float32'],
    };
    const settings = { warmup: 1, steps: 1, seed: 0 };
    const of = (more: object) =>
      attentionBenchmark.settings(attentionBenchmark.parameters.parse({ ...asked, ...settings, ...more }));
    expect(of({})).toStrictEqual(settings);
    expect(of({ peer: { name: 'torch', version: '2' } })).toMatchObject({ peer: { version: '2' } });
    expect(attentionResult.parse(records[0]!.result).peer).toMatchObject({ status: 'ok' });
  });
});
