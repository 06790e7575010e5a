import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../fixtures/run-cli.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

const model = '--d-model 16 --layers 1 --heads 2 --vocab 50 --context 8'.split(' ');

describe('roofline profile on the CPU', () => {
  let root: string;
  beforeAll(() => void (root = mkdtempSync(join(tmpdir(), 'roofline-profile-'))));
  afterAll(() => rmSync(root, { recursive: true }));
  const profile = (...args: string[]) =>
    runCli([
      ...['profile', ...model, ...(args.includes('--d-ff') ? [] : ['--d-ff', '32'])],
      ...['--device', 'cpu', '--warmup', '1', '--steps', '2', ...args],
    ]);

  it('prints the tables and writes a trace', async () => {
    const out = join(root, 'whole');
    const { exitCode, stdout, stderr } = await profile('--out', out);
    expect(exitCode).toBe(0);
    for (const title of [
      'Kernel summary',
      'Kernel time against wall time',
      'Matrix products against the rest',
    ]) {
      expect(stdout).toContain(title);
    }
    const [, path] = /Trace: (\S+)/.exec(stderr)!;
    const { traceEvents } = JSON.parse(readFileSync(path!, 'utf8')) as { traceEvents: { name: string }[] };
    const names = new Set(traceEvents.map(({ name }) => name));
    for (const range of ['forward', 'backward', 'optimizer', 'attention.softmax', 'loss', 'layers.0']) {
      expect(names).toContain(range);
    }
  });

  it('tells two models of one folder apart, in traces and in a report', async () => {
    const out = join(root, 'whole');
    const wider = await profile('--d-ff', '48', '--out', out);
    expect(wider.stderr).toMatch(/d-ff-48\S*\.json/);
    expect(readdirSync(join(out, 'traces'))).toHaveLength(2);
    const report = await runCli(['report', out]);
    expect(report).toMatchObject({ exitCode: 0, stderr: '' });
  });

  it('keeps what was measured where traces have no place, and says so in a line', async () => {
    const out = temporaryFolder();
    writeFileSync(join(out, 'traces'), '');
    const { exitCode, stderr } = await profile('--out', out);
    expect(stderr).toMatch(/\nroofline: Cannot write to .*traces: it is no folder.*\n$/);
    expect(exitCode).toBe(2);
    expect(readFileSync(join(out, 'results.jsonl'), 'utf8')).toContain('"status":"ok"');
  });

  it('prints JSON of the selected kernels and nothing else', async () => {
    const { exitCode, stdout } = await profile(
      ...'--phase backward --range attention.* --json --out'.split(' '),
      join(root, 'part'),
    );
    expect(exitCode).toBe(0);
    const { rows, settings } = JSON.parse(stdout);
    expect(settings).toMatchObject({ phase: 'backward', range: 'attention.*' });
    expect(rows.length).toBeGreaterThan(0);
    for (const row of rows) expect(row.totalNs).toBeGreaterThan(0);
  });
});
