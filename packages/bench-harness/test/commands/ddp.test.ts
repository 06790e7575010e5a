import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ddpCell } from '../../src/benchmarks/ddp/parameters.ts';
import { ddpResult } from '../../src/benchmarks/ddp/result.ts';
import { tensorParallel } from '../../src/plan/layout.ts';
import { trafficOf } from '../../src/plan/traffic.ts';
import type { ChromeTrace } from '../../src/benchmarks/profile/trace/chrome-trace.ts';
import { runCli } from '../fixtures/run-cli.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { torchPython } from '../fixtures/torch.ts';

const collectives = dirname(createRequire(import.meta.url).resolve('@roofline/collectives/package.json'));
const hasGloo = existsSync(join(collectives, 'native/build/libroofline_gloo.so'));
const model = '--d-model 16 --d-ff 32 --layers 1 --heads 2 --vocab 50 --context 8 --batch 1'.split(' ');

function recordIn(folder: string) {
  const name = readdirSync(folder).find((file) => file.endsWith('.jsonl'))!;
  const [line] = readFileSync(join(folder, name), 'utf8').split('\n');
  const { parameters, result } = JSON.parse(line!) as { parameters: unknown; result: unknown };
  return { cell: ddpCell.parse(parameters), result: ddpResult.parse(result) };
}

describe.skipIf(!hasGloo)(`roofline ddp${hasGloo ? '' : ' (skipped: Gloo is not installed)'}`, () => {
  it('trains on several ranks, and reports', async () => {
    const out = join(temporaryFolder(), 'out');
    // A bucket that is never full takes all gradients.
    const buckets = '--bucket-mib 1e300'.split(' ');
    const words = '--nproc 2 --optimizer sharded --mode naive,overlap --steps 2 --warmup 1 --out'.split(' ');
    const { exitCode, stdout } = await runCli(['ddp', ...model, ...buckets, ...words, out, '--json']);
    expect(exitCode).toBe(0);
    const { rows } = JSON.parse(stdout) as { rows: Record<string, number | string>[] };
    expect(rows.map(({ optimizer, mode, status }) => [optimizer, mode, status])).toEqual([
      ['sharded', 'naive', 'ok'],
      ['sharded', 'overlap', 'ok'],
    ]);
    expect(rows.map(({ buckets }) => buckets)).toEqual([12, 1]);
    for (const { stepMs, communicationMs, hiddenShare } of rows) {
      expect(Math.min(Number(stepMs), Number(communicationMs))).toBeGreaterThan(0);
      expect(Number(hiddenShare)).toBeGreaterThanOrEqual(0);
      expect(Number(hiddenShare)).toBeLessThanOrEqual(1);
    }
    // Every parameter is used by one op, which writes its gradient into the bucket.
    expect(rows.map(({ copiedBytes }) => copiedBytes)).toEqual([0, 0]);
    const traces = readdirSync(join(out, 'traces'));
    expect(traces).toHaveLength(2);
    const trace = JSON.parse(readFileSync(join(out, 'traces', traces[0]!), 'utf8')) as ChromeTrace;
    const names = trace.traceEvents.map(({ name, args }) => args['name'] ?? name);
    for (const name of ['rank 0', 'rank 1', 'cpu', 'gloo', 'allReduce']) expect(names).toContain(name);
    const report = await runCli(['report', out]);
    expect(report).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('a step takes') });
  });

  it('trains sharded parameters', async () => {
    const saving = '--attention flash --recompute block --logits chunked'.split(' ');
    const words =
      '--nproc 2 --mode fsdp --dtype bfloat16 --execution eager,compiled --steps 1 --warmup 0 --out'.split(
        ' ',
      );
    const { exitCode, stdout } = await runCli([
      'ddp',
      ...model,
      ...saving,
      ...words,
      join(temporaryFolder(), 'out'),
      '--json',
    ]);
    expect(exitCode).toBe(0);
    const { rows } = JSON.parse(stdout) as { rows: Record<string, number | string>[] };
    const common = { mode: 'fsdp', attention: 'flash', status: 'ok', exposedMs: null, copiedBytes: 0 };
    expect(rows).toMatchObject([
      { ...common, execution: 'eager', optimizerMs: expect.any(Number) },
      { ...common, execution: 'compiled', optimizerMs: null },
    ]);
    for (const { communicationMs, coldStartMs, hiddenShare } of rows) {
      expect(Math.min(Number(communicationMs), Number(coldStartMs))).toBeGreaterThan(0);
      expect(Number(hiddenShare)).toBeGreaterThan(0);
    }
  });

  it('trains divided layers, which send what a plan says', async () => {
    const out = join(temporaryFolder(), 'out');
    const words = '--nproc 2 --mode tensor --dtype bfloat16 --recompute block --steps 1 --warmup 0 --out';
    const { exitCode, stdout } = await runCli(['ddp', ...model, ...words.split(' '), out, '--json']);
    expect(exitCode).toBe(0);
    const { rows } = JSON.parse(stdout) as { rows: Record<string, number | string>[] };
    expect(rows).toMatchObject([{ mode: 'tensor', status: 'ok', exposedMs: null, hiddenShare: null }]);
    const { cell, result } = recordIn(out);
    const setting = { ...cell, attention: 'plain', recompute: 'block' } as const;
    const planned = trafficOf(tensorParallel(2), setting).flatMap(({ bytes, calls }) =>
      Array.from({ length: calls }, () => bytes),
    );
    expect(result.bucketBytes.toSorted((a, b) => a - b)).toEqual(planned.toSorted((a, b) => a - b));
  });

  it('divides sequences, whose keys and values go around with their gradients', async () => {
    const out = join(temporaryFolder(), 'out');
    const words =
      '--nproc 2 --mode fsdp-context --attention flash --execution eager,compiled --steps 1 --warmup 0 --out';
    const { exitCode, stdout } = await runCli(['ddp', ...model, ...words.split(' '), out, '--json']);
    expect(exitCode).toBe(0);
    const { rows } = JSON.parse(stdout) as { rows: Record<string, number | string>[] };
    const common = { mode: 'fsdp-context', status: 'ok', exposedMs: null, hiddenShare: null };
    expect(rows).toMatchObject(['eager', 'compiled'].map((execution) => ({ ...common, execution })));
    const { cell, result } = recordIn(out);
    const { layers, modelDimension } = cell.shape;
    const bytes = 2 * cell.batch * (cell.context / 2) * modelDimension * Float32Array.BYTES_PER_ELEMENT;
    // Once forward, and once backward with two of the gradients' after them, there and back.
    const sent = result.bucketBytes.filter((each) => each === bytes);
    expect(sent).toHaveLength(4 * layers);
  });

  it.skipIf(torchPython === null)('runs in turn with PyTorch (needs Python with it)', async () => {
    const out = join(temporaryFolder(), 'out');
    const words = '--mode overlap --optimizer sharded --steps 2 --warmup 0 --peer torch --out'.split(' ');
    const { exitCode, stdout } = await runCli(['ddp', ...model, ...words, out, '--json']);
    expect(exitCode).toBe(0);
    const [row] = (JSON.parse(stdout) as { rows: Record<string, number>[] }).rows;
    expect(row!['peerError']).toBeNull();
    expect(row!['peerMs']).toBeGreaterThan(0);
    expect(row!['ratio']).toBeCloseTo(row!['stepMs']! / row!['peerMs']!, 6);
  });

  it.skipIf(torchPython === null)(
    "keeps our times where one of PyTorch's ranks ends, and another waits for it (needs Python with it)",
    async () => {
      const folder = temporaryFolder();
      const python = join(folder, 'python');
      // How long ours wait for each other then: see rank-timeouts.test.ts.
      const ending = '*torch_ddp*) [ "$RANK" = 1 ] || sleep 2; exit 3';
      const program = `#!/bin/sh\ncase "$*" in ${ending};; esac\nexec ${torchPython!.executable} "$@"\n`;
      writeFileSync(python, program, { mode: 0o755 });
      const words = '--mode flat --steps 1 --warmup 0 --peer torch --out'.split(' ');
      const { exitCode, stdout } = await runCli(['ddp', ...model, ...words, join(folder, 'out'), '--json'], {
        ROOFLINE_PYTHON: python,
      });
      const [row] = (JSON.parse(stdout) as { rows: Record<string, unknown>[] }).rows;
      expect(row).toMatchObject({ status: 'ok', peerError: expect.stringContaining('ended unexpectedly') });
      expect(exitCode).toBe(0);
    },
  );

  it('a rank that fails is a row that says what it said last', async () => {
    const out = join(temporaryFolder(), 'out');
    const words = '--nproc 2 --mode flat --steps 1 --out'.split(' ');
    // There is no such network interface.
    const { exitCode, stdout } = await runCli(['ddp', ...model, ...words, out, '--json'], {
      GLOO_SOCKET_IFNAME: 'nosuch0',
    });
    expect(exitCode).toBe(1);
    const { rows } = JSON.parse(stdout) as { rows: Record<string, string>[] };
    expect(rows[0]).toMatchObject({ status: 'failed', error: expect.stringContaining('nosuch0') });
  });
});
