import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { formatPercent, renderHtml, renderMarkdown, type Table } from '@roofline/reports';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { memoryBenchmark } from '../../../src/benchmarks/memory/benchmark.ts';
import { memoryResult } from '../../../src/benchmarks/memory/result.ts';
import type { CellRecord } from '../../../src/records/record.ts';
import { runCli } from '../../fixtures/run-cli.ts';

const model = '--d-model 16 --d-ff 32 --layers 2 --heads 2 --vocab 50 --device cpu'.split(' ');
const quick = '--warmup 1 --steps 1 --batch 2'.split(' ');

describe('roofline memory on the CPU', () => {
  let root: string;
  let records: CellRecord[];
  beforeAll(async () => {
    root = mkdtempSync(join(tmpdir(), 'roofline-memory-'));
    const words = [...model, ...quick, '--context', '4,8', '--dtype', 'float32', '--out', join(root, 'out')];
    const { exitCode, stdout } = await runCli(['memory', ...words, '--json']);
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout).rows).toHaveLength(4);
    const lines = readFileSync(join(root, 'out', 'results.jsonl'), 'utf8')
      .trim()
      .split('\n');
    records = lines.map((line) => JSON.parse(line) as CellRecord);
  });
  afterAll(() => rmSync(root, { recursive: true }));
  const resultOf = (mode: string, context: number) =>
    memoryResult.parse(
      records.find(({ parameters }) => parameters['mode'] === mode && parameters['context'] === context)!
        .result,
    );

  it('reports the peak of each phase and what was live', () => {
    const result = resultOf('train-step', 8);
    expect(result.phases.map(({ phase }) => phase)).toEqual(['forward', 'backward', 'optimizer']);
    expect(Math.max(...result.phases.map(({ bytes }) => bytes))).toBe(result.peakAllocatedBytes);
    for (const { bytes, live } of result.phases) {
      expect(live.reduce((sum, share) => sum + share.bytes, 0)).toBe(bytes);
    }
    expect(result.weightBytes).toBe(4 * result.parameterCount);
    // Two moments of every parameter, and a little more.
    expect(result.otherHeldBytes).toBeGreaterThan(2 * result.weightBytes);
    expect(resultOf('forward', 8).phases.map(({ phase }) => phase)).toEqual(['forward']);
  });

  it('keeps as many calls of an allocation as it is asked to', async () => {
    const tooFew = '--context 4 --mode forward --dtype float32 --stack-depth 0 --out'.split(' ');
    const out = join(root, 'shallow');
    expect((await runCli(['memory', ...model, ...quick, ...tooFew, out])).exitCode).toBe(0);
    const { result } = JSON.parse(readFileSync(join(out, 'results.jsonl'), 'utf8')) as CellRecord;
    const stacks = ({ largest }: { largest: readonly { stack: readonly string[] }[] }) =>
      new Set(largest.filter(({ stack }) => stack.length > 0));
    expect(stacks(memoryResult.parse(result)).size).toBe(0);
    expect(stacks(resultOf('forward', 4)).size).toBeGreaterThan(0);
  });

  it('counts what one block saves', () => {
    const { savedByBlock, savedBytes, residual } = resultOf('train-step', 8);
    expect(residual).toEqual({ dtype: 'float32', bytes: 2 * 8 * 16 * 4 });
    expect(savedByBlock!.contributors).toHaveLength(5);
    const sizes = savedByBlock!.contributors.map(({ bytes }) => bytes);
    expect(sizes).toEqual(sizes.toSorted((a, b) => b - a));
    expect(savedByBlock!.bytes).toBeGreaterThan(sizes.reduce((a, b) => a + b));
    expect(2 * savedByBlock!.bytes).toBeLessThan(savedBytes);
    expect(resultOf('forward', 8).savedByBlock).toBeNull();
  });

  it('counts the gradients of one block: those of its parameters', () => {
    const { gradientsOfBlock } = resultOf('train-step', 8);
    const [d, feedForward] = [16, 32];
    expect(gradientsOfBlock!.bytes).toBe(4 * (4 * d * d + 3 * d * feedForward + 2 * d));
    expect(gradientsOfBlock!.count).toBe(4 + 3 + 2);
    expect(resultOf('train-step', 4).gradientsOfBlock).toEqual(gradientsOfBlock);
    expect(resultOf('forward', 8).gradientsOfBlock).toBeNull();
  });

  it('names the largest allocations with their origin', () => {
    const [first] = resultOf('train-step', 8).largest;
    expect(first).toMatchObject({ op: expect.any(String), phase: expect.any(String) });
    expect(first!.stack.some((frame) => frame.includes('/transformer/src/'))).toBe(true);
  });

  it('writes a snapshot for each cell', () => {
    const { snapshot } = resultOf('train-step', 8);
    expect(snapshot).toBe(
      'snapshots/custom-vocab=50-d-model=16-d-ff=32-layers=2-heads=2-context8-batch2-train-step-float32.pickle',
    );
    expect(existsSync(join(root, 'out', snapshot!))).toBe(true);
  });

  it('makes a row of a cell that runs out of memory and records the rest', async () => {
    const sweep = ['--mode', 'forward', '--context', '4', '--batch', '100000000000,2', '--dtype', 'float32'];
    const words = [...model, '--warmup', '0', '--steps', '1', ...sweep, '--out', join(root, 'spent')];
    const { exitCode, stdout } = await runCli(['memory', ...words, '--json']);
    expect(exitCode).toBe(3);
    const { rows } = JSON.parse(stdout) as { rows: { status: string }[] };
    expect(rows.map(({ status }) => status)).toEqual(['out-of-memory', 'ok']);
  });

  it('reports, with a row for what ran out of memory', () => {
    const [first, ...rest] = records;
    const spent: CellRecord = {
      ...first!,
      status: 'out-of-memory',
      result: null,
      error: { name: 'OutOfMemoryError', message: 'asked for 1 GiB' },
    };
    const report = memoryBenchmark.toReport([spent, ...rest]);
    expect(report.summary.at(-1)).toEqual(
      expect.stringMatching(
        /^1 of \d+ cells could not be measured: custom .* context 4 .* \(out of memory\)\.$/,
      ),
    );
    expect(report.title).toMatch(/^The peak of a float32 training step is [\d.]+× to [\d.]+× its weights$/);
    expect(report.chart).toMatchObject({ kind: 'ratios', value: 'bytes', ours: 'Peak', theirs: 'Weights' });
    // A busy machine adds a note, which has no id.
    const blocks = report.sections.flatMap((section) => section.blocks.filter((block) => 'id' in block));
    expect(blocks.map((block) => block.id)).toEqual([
      'memory-sweep',
      'peak-by-context',
      'allocations-over-a-forward-pass',
      'allocations-over-a-step',
      'live-at-the-peak',
      'largest-allocations',
      'saved-by-a-block',
      'cells-not-measured',
    ]);
    const saved = blocks.find((block): block is Table => 'id' in block && block.id === 'saved-by-a-block');
    const { share, op } = saved!.rows[0]!;
    expect(report.summary.join()).toContain(
      `${formatPercent(share as number)} of it is one tensor for the gradient of \`${op}\`.`,
    );
    expect(renderMarkdown(report)).toContain('Memory of one step');
    expect(renderHtml(report)).toContain('allocations-over-a-step');
  });
});
