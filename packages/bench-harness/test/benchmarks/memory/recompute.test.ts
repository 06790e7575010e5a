import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { renderHtml, renderMarkdown } from '@roofline/reports';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { memoryBenchmark } from '../../../src/benchmarks/memory/benchmark.ts';
import { bestGroup, predictedKeptBytes } from '../../../src/benchmarks/memory/report/recompute.ts';
import type { CellRecord } from '../../../src/records/record.ts';
import { runCli } from '../../fixtures/run-cli.ts';

const policies = ['none', 'block', '2', '4', 'attention-kept', 'recursive'];
const words =
  '--d-model 32 --d-ff 96 --layers 8 --heads 4 --vocab 40 --device cpu --warmup 1 --steps 1 --batch 2 --context 64 --dtype float32';

describe('roofline memory --recompute', () => {
  let root: string;
  let records: CellRecord[];
  beforeAll(async () => {
    root = mkdtempSync(join(tmpdir(), 'roofline-recompute-'));
    const flags = ['--mode', 'forward-backward', '--recompute', policies.join(','), '--out', root];
    expect((await runCli(['memory', ...words.split(' '), ...flags])).exitCode).toBe(0);
    const lines = readFileSync(join(root, 'results.jsonl'), 'utf8').trim().split('\n');
    records = lines.map((line) => JSON.parse(line) as CellRecord);
  });
  afterAll(() => rmSync(root, { recursive: true }));

  const report = () => memoryBenchmark.toReport(records);
  const rows = () => {
    const sections = report().sections.find(({ id }) => id === 'recomputation')!;
    const [table] = sections.blocks.filter((block) => block.kind === 'table');
    return table!.rows as Record<string, unknown>[];
  };

  it('predicts the peak of each policy from what a block keeps', () => {
    expect(rows().map((row) => row['recompute'])).toEqual(policies);
    for (const row of rows()) {
      const [peak, predicted] = [Number(row['peakBytes']), Number(row['predictedBytes'])];
      // What is made for a moment, and the gradients of blocks done, are at another time at their most.
      expect(Math.abs(predicted / peak - 1)).toBeLessThan(0.35);
    }
    const [none, block] = rows();
    expect(Number(none!['peakBytes'])).toBe(Number(none!['predictedBytes']));
    expect(Number(block!['savedBytes'])).toBeLessThan(Number(none!['savedBytes']) / 3);
    expect(Number(block!['gradientBytes'])).toBe(4 * (4 * 32 * 32 + 3 * 32 * 96 + 2 * 32));
  });

  it('predicts no less than what is there with all gradients', () => {
    const { weightBytes, otherHeldBytes, parameterCount } = records[0]!.result as Record<string, number>;
    const least = weightBytes! + otherHeldBytes! + 4 * parameterCount!;
    const predicted = rows().map((row) => Number(row['predictedBytes']));
    expect(Math.min(...predicted)).toBeGreaterThanOrEqual(least);
    // Activations that are small compared with the weights.
    const light = records.map((record) => {
      const result = structuredClone(record.result) as Record<string, number>;
      result['weightBytes'] = weightBytes! + 2 ** 30;
      return {
        ...record,
        result: { ...result, peakAllocatedBytes: result['peakAllocatedBytes']! + 2 ** 30 },
      };
    });
    const [table] = memoryBenchmark
      .toReport(light as CellRecord[])
      .sections.find(({ id }) => id === 'recomputation')!
      .blocks.filter((block) => block.kind === 'table');
    for (const row of table!.rows as Record<string, unknown>[])
      expect(Math.abs(Number(row['predictedBytes']) / Number(row['peakBytes']) - 1)).toBeLessThan(0.01);
  });

  it('leads with what that takes, and says which policy takes the least', () => {
    const text = renderMarkdown(report());
    expect(report().title).toMatch(/^The peak of .* of one that keeps all of its activations/);
    expect(text).toMatch(/Least memory takes `--recompute (recursive|2|block)`: a peak of/);
    expect(text).toMatch(/groups of \d would keep the least/);
    expect(text).toContain('Time of a step against its peak');
    // Whose parts have names of their own.
    expect(renderHtml(report())).toContain('What is made again');
  });
});

describe('what blocks keep', () => {
  const blocks = { layers: 16, input: 10, attention: 5, all: 40 };

  it('follows from the policy', () => {
    const kept = (policy: string) => predictedKeptBytes(policy, blocks);
    expect(['none', 'block', '1', '4', '16', '99', 'attention-kept', 'recursive'].map(kept)).toEqual([
      640, 200, 200, 200, 650, 650, 280, 80,
    ]);
  });

  it('is least for groups of the root', () => {
    const best = bestGroup(blocks);
    expect(best).toBe(2);
    for (let group = 1; group <= 16; group++)
      expect(predictedKeptBytes(String(best), blocks)).toBeLessThanOrEqual(
        predictedKeptBytes(String(group), blocks),
      );
    expect(bestGroup({ ...blocks, input: 40 })).toBe(4);
  });
});
