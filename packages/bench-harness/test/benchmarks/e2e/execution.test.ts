import { device } from '@roofline/tensor-core';
import { renderHtml } from '@roofline/reports';
import { describe, expect, it } from 'vitest';
import {
  describeCell,
  e2eCell,
  e2eSweep,
  expandCells,
  modes,
} from '../../../src/benchmarks/e2e/parameters.ts';
import { e2eBenchmark } from '../../../src/benchmarks/e2e/benchmark.ts';
import { createWorkload } from '../../../src/benchmarks/e2e/workload.ts';
import type { CellRecord } from '../../../src/records/record.ts';
import { tableIn } from '../../fixtures/blocks.ts';
import { toyCell, toyRecord, toyResult } from '../../fixtures/records.ts';
import { runMain } from '../../fixtures/run-main.ts';

const compiled = { ...toyCell, execution: 'compiled' } as const;

const compiledTable = (records: readonly CellRecord[]) =>
  tableIn(e2eBenchmark.toReport(records), 'compiled-beside-eager');

describe('the execution of a cell', () => {
  it('is swept, and that of the peer where there is one', () => {
    const sweep = (peer: { name: 'torch'; version: string } | null) =>
      expandCells(
        e2eSweep.parameters.parse({
          model: [{ size: toyCell.size, shape: toyCell.shape }],
          ...{ context: [8], batch: [2], mode: ['forward'], dtype: ['float32'], attention: ['plain'] },
          ...{ warmup: 0, steps: 1, seed: 0, peer, peerAttention: ['plain'] },
          ...{ execution: ['eager', 'compiled'], peerExecution: ['eager', 'compile'] },
        }),
      ).map(({ execution, peerExecution }) => `${execution} ${peerExecution}`);
    expect(sweep(null)).toEqual(['eager eager', 'compiled eager']);
    expect(sweep({ name: 'torch', version: '2.0' })).toEqual([
      'eager eager',
      'eager compile',
      'compiled eager',
      'compiled compile',
    ]);
  });

  it('is, of several peers, that of each: as asked for, or else the usual one', () => {
    const named = (name: 'torch' | 'jax') => ({ name, version: '1' });
    const ways = (...names: ('torch' | 'jax')[]) => {
      const peers = names.map(named);
      return expandCells(
        e2eSweep.parameters.parse({
          model: [{ size: toyCell.size, shape: toyCell.shape }],
          ...{ context: [8], batch: [2], mode: ['forward'], dtype: ['float32'], attention: ['plain'] },
          ...{
            warmup: 0,
            steps: 1,
            seed: 0,
            execution: ['eager'],
            peer: peers.length > 1 ? peers : peers[0],
          },
          ...{ peerAttention: ['sdpa'], peerExecution: ['compile', 'whole-graph'] },
        }),
      ).map(({ peerAttention, peerExecution }) => `${peerAttention} ${peerExecution}`);
    };
    expect(ways('torch', 'jax')).toEqual(['sdpa compile', 'sdpa whole-graph', 'dot-product jit']);
    expect(ways('jax')).toEqual(['dot-product jit']);
  });

  it.each([
    ['e2e --peer-execution jit', '--peer-execution is that of a peer: add --peer jax.'],
    ['e2e --peer jax --peer-attention sdpa', "--peer-attention sdpa is PyTorch's: make it --peer jax,torch."],
    [
      'profile --peer torch --peer-execution jit',
      "--peer-execution jit is JAX's, which only roofline e2e runs.",
    ],
  ])('is refused where its peer is not measured: %s', async (command, message) => {
    const { exitCode, stderr } = await runMain(command.split(' '));
    expect(stderr).toContain(message);
    expect(exitCode).toBe(2);
  });

  it('is eager in records from before there was another, and named where it is not', () => {
    const { execution: _, peerExecution: __, ...older } = toyCell;
    expect(e2eCell.parse(older)).toEqual(toyCell);
    expect(describeCell({ ...compiled, peerExecution: 'reduce-overhead' })).toBe(
      'small · context 16 · batch 2 · compiled · PyTorch reduce-overhead · train-step · float32',
    );
  });

  it.each(
    modes.flatMap((mode) => (['compiled', 'autotuned'] as const).map((execution) => ({ mode, execution }))),
  )('$execution makes a program of a step of $mode that does the same work', ({ mode, execution }) => {
    const [eager, program] = [
      { ...toyCell, mode },
      { ...compiled, mode, execution },
    ].map((cell) => createWorkload(cell, device('cpu'), 0));
    program!.compile();
    expect(program!.program!.compilation.calls).toBeGreaterThanOrEqual(2);
    for (let i = 0; i < program!.program!.compilation.calls + 2; i++) eager!.step((_, work) => work());
    for (let i = 0; i < 2; i++) program!.step((_, work) => work());
    expect(program!.loss()).toBe(eager!.loss());
  });

  it('of both in turn is compared with the eager steps of the same minutes', () => {
    const { deviceMs, wallMs, phasesMs } = toyResult(2);
    const result = { ...toyResult(0.5), eagerInTurn: { deviceMs, wallMs, phasesMs } };
    const table = compiledTable([toyRecord(), toyRecord(compiled, { result })])!;
    expect(table.rows[0]).toMatchObject({ eagerMs: 20, compiledMs: 5, ratio: 0.25 });
    expect(table.caption).toMatch(/^Steps of both in turn, of one model\. /);
  });

  it('makes the sweep measure both in turn', () => {
    const settings = (execution: ('eager' | 'compiled')[]) => {
      const { settings } = e2eBenchmark;
      return settings({ ...{ warmup: 0, steps: 1, seed: 0, peer: null }, execution } as never);
    };
    expect(settings(['eager', 'compiled'])).toHaveProperty('sweepsEager', true);
    for (const execution of [['eager' as const], ['compiled' as const]])
      expect(settings(execution)).not.toHaveProperty('sweepsEager');
  });

  it('has a table of both, with what compiling took', () => {
    const result = { ...toyResult(0.5), compilation: { calls: 3, durationMs: 204 } };
    const records = [toyRecord(), toyRecord(compiled, { result })];
    const [row] = compiledTable(records)!.rows;
    expect(row).toMatchObject({ eagerMs: 10, compiledMs: 5, ratio: 0.5, compileMs: 204, paysAfter: 40 });
    expect(compiledTable([records[1]!])).toBeUndefined();
    expect(compiledTable(records)!.caption).toContain('compiled');
    const both = [...records, toyRecord({ ...compiled, execution: 'autotuned' }, { result })];
    const table = compiledTable(both)!;
    expect(table.rows.map(({ execution }) => execution)).toEqual(['compiled', 'autotuned']);
    expect(table.columns.map(({ key }) => key)).toContain('execution');
    expect(renderHtml(e2eBenchmark.toReport(records))).toContain('Compiled vs eager');
  });

  it('of a peer wants a peer', async () => {
    const { exitCode, stderr } = await runMain(['e2e', '--peer-execution', 'compile']);
    expect(exitCode).toBe(2);
    expect(stderr).toContain('--peer-execution is that of a peer: add --peer torch.');
  });
});
