import { device } from '@roofline/tensor-core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { attentionFunction } from '../../../src/attention/attention-function.ts';
import {
  describeCell,
  e2eCell,
  e2eSweep,
  expandCells,
  type E2eCell,
  stepNames,
  stepParameters,
} from '../../../src/benchmarks/e2e/parameters.ts';
import { createWorkload } from '../../../src/benchmarks/e2e/workload.ts';
import { snapshotName } from '../../../src/benchmarks/memory/parameters.ts';
import { cellSlug } from '../../../src/benchmarks/profile/interpret.ts';
import { precisionBenchmark } from '../../../src/benchmarks/precision/benchmark.ts';
import type { CellRecord } from '../../../src/records/record.ts';
import { StepPeer } from '../../../src/peer/step-peer.ts';
import { compareRecords } from '../../../src/report/compare.ts';
import { parameterColumns, sharedCaption } from '../../../src/parameters/parameter-columns.ts';
import { tableIn } from '../../fixtures/blocks.ts';
import { toyCell, toyRecord, toyResult } from '../../fixtures/records.ts';
import { runMain } from '../../fixtures/run-main.ts';
import { torchPython } from '../../fixtures/torch.ts';

const flash: E2eCell = { ...toyCell, attention: 'flash' };
const { attention: _, peerAttention: __, ...olderCell } = toyCell;

describe('the attention of a cell', () => {
  const sweep = (peer: { name: 'torch'; version: string } | null) =>
    expandCells(
      e2eSweep.parameters.parse({
        model: [{ size: toyCell.size, shape: toyCell.shape }],
        ...{ context: [8], batch: [2], mode: ['forward'], dtype: ['float32'] },
        attention: ['plain', 'flash'],
        ...{ warmup: 0, steps: 1, seed: 0, peer, peerAttention: ['plain', 'sdpa'] },
      }),
    ).map(({ attention, peerAttention }) => [attention, peerAttention]);

  it('is swept, and that of the peer where there is one', () => {
    const torch = { name: 'torch' as const, version: '2.0' };
    expect(sweep(null)).toEqual([
      ['plain', 'plain'],
      ['flash', 'plain'],
    ]);
    expect(sweep(torch)).toEqual([
      ['plain', 'plain'],
      ['plain', 'sdpa'],
      ['flash', 'plain'],
      ['flash', 'sdpa'],
    ]);
  });

  it('is plain in records from before there was another, which are compared with those after', async () => {
    expect(e2eCell.parse(olderCell)).toEqual(toyCell);
    const older = { ...toyRecord(), parameters: olderCell };
    expect(await compareRecords([older], [toyRecord()])).toHaveLength(1);
    expect(await compareRecords([toyRecord(flash)], [older])).toEqual([]);
  });

  it('is named where it is not plain, or not the same in all', () => {
    expect(describeCell(toyCell)).toBe('small · context 16 · batch 2 · train-step · float32');
    expect(describeCell({ ...flash, peerAttention: 'sdpa' })).toBe(
      "small · context 16 · batch 2 · flash attention · PyTorch's sdpa attention · train-step · float32",
    );
    expect(stepNames([{ cell: toyCell }, { cell: flash }]).name(toyCell)).toBe('small, plain attention');
    expect(stepNames([{ cell: flash }]).shared).toContain('flash attention');
    expect(sharedCaption(stepParameters, [flash])).toBe('All rows: batch 2, flash attention, float32.');
    expect(parameterColumns(stepParameters, [flash, toyCell]).map(({ key }) => key)).toContain('attention');
  });

  it('is in the names of traces and snapshots, so that none overwrites another', () => {
    expect(cellSlug(toyCell)).toBe('small-c16-b2-train-step-float32');
    expect(cellSlug(flash)).toBe('small-c16-b2-train-step-float32-flash-attention');
    expect(snapshotName(toyCell)).toBe('small-context16-batch2-train-step-float32.pickle');
    expect(snapshotName(flash)).toBe('small-context16-batch2-train-step-float32-flash-attention.pickle');
  });

  it('is what the model attends with, forward and backward', () => {
    const losses = (['plain', 'flash'] as const).map((attention) => {
      const workload = createWorkload({ ...toyCell, attention }, device('cpu'), 0);
      for (let step = 0; step < 3; step++) workload.step((_name, work) => work());
      return workload.loss()!;
    });
    expect(attentionFunction('flash')).not.toBe(attentionFunction('plain'));
    // Some tens of float32 roundings in each of three steps; wrong gradients move the loss by AdamW's rate, 1e-3.
    expect(Math.abs(losses[1]! / losses[0]! - 1)).toBeLessThan(2 ** -24 * 64);
  });

  it('is the same in both precisions of a speed-up', () => {
    const record = (attention: E2eCell['attention'], dtype: E2eCell['dtype'], scale: number): CellRecord => ({
      ...toyRecord(),
      benchmark: 'precision',
      parameters: { ...toyCell, attention, dtype, study: 'speed' },
      result: { ...toyResult(scale), study: 'speed' },
    });
    const [plain, flash] = [record('plain', 'float32', 4), record('flash', 'float32', 2)];
    const low = record('flash', 'bfloat16', 1);
    const rowsOf = (records: readonly CellRecord[]) =>
      tableIn(precisionBenchmark.toReport(records), 'speed')!.rows;
    expect(rowsOf([plain, low]).map(({ speedUp }) => speedUp)).toEqual([1, null]);
    expect(rowsOf([plain, flash, low]).map(({ speedUp }) => speedUp)).toEqual([1, 1, 2]);
    expect(rowsOf([plain, low]).map(({ attention }) => attention)).toEqual(['plain', 'flash']);
  });

  it('of a peer needs the peer', async () => {
    const { exitCode, stderr } = await runMain(['e2e', '--peer-attention', 'sdpa']);
    expect(stderr).toContain('--peer-attention is that of a peer: add --peer torch.');
    expect(exitCode).toBe(2);
  });

  it.skipIf(torchPython === null)("is scaled_dot_product_attention in PyTorch's model", async () => {
    const peer = new StepPeer('torch', torchPython!.executable, 1);
    onTestFinished(() => peer.close());
    const { shape: config, batch, context, mode, dtype } = toyCell;
    const job = { config, batch, context, mode, dtype, device: 'cpu', seed: 0, threads: 1 };
    await peer.prepare({ ...job, attention: 'sdpa' });
    if (Number.parseInt(torchPython!.torchVersion) >= 2) {
      expect((await peer.run(1)).deviceMs).toHaveLength(1);
    } else {
      await expect(peer.run(1)).rejects.toThrow('scaled_dot_product_attention needs PyTorch 2.0 or newer');
    }
    await expect(peer.prepare({ ...job, attention: 'other' })).rejects.toThrow('KeyError');
  });
});
