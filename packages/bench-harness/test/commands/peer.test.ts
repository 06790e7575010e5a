import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { levelSums } from '../../src/benchmarks/profile/report/range-levels.ts';
import { cellRecord } from '../../src/records/record.ts';
import { profiledOf } from '../../src/benchmarks/profile/interpret.ts';
import { interpretProfile } from '../fixtures/profiles.ts';
import { runCli } from '../fixtures/run-cli.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { torchPython } from '../fixtures/torch.ts';

describe.skipIf(torchPython === null)('with PyTorch', () => {
  it('roofline agree finds agreement to float32 rounding', async () => {
    const { exitCode, stdout } = await runCli([
      'agree',
      '--device',
      'cpu',
      '--configurations',
      '1',
      '--wide',
      '0',
      '--json',
    ]);
    const { rows, verdict } = JSON.parse(stdout);
    expect(rows.map((row: { verdict: string }) => row.verdict)).toEqual(['agrees', 'agrees', 'agrees']);
    expect(verdict).toMatch(/^Agrees with PyTorch [^ ]+: all 3 errors are within tolerance\.$/);
    expect(exitCode).toBe(0);
  });

  it('roofline e2e --peer torch gives the ratio', async () => {
    const folder = temporaryFolder();
    const { exitCode, stdout, stderr } = await runCli([
      ...'e2e --d-model 16 --d-ff 32 --layers 1 --heads 2 --vocab 50 --context 8 --mode train-step'.split(
        ' ',
      ),
      ...'--device cpu --warmup 1 --steps 3 --peer torch --json --out'.split(' '),
      folder,
    ]);
    expect(stderr).toContain('[1/1]');
    expect(exitCode).toBe(0);
    const [row] = JSON.parse(stdout).rows;
    expect(row.peerMs).toBeGreaterThan(0);
    expect(row.ratio).toBeCloseTo(row.medianMs / row.peerMs, 6);
    expect(row.ratioLow).toBeLessThanOrEqual(row.ratio);
  });

  it("roofline profile --peer torch compares our kernels with PyTorch's", async () => {
    const folder = temporaryFolder();
    const { exitCode, stdout } = await runCli([
      ...'profile --d-model 16 --d-ff 32 --layers 2 --heads 2 --vocab 50 --context 8'.split(' '),
      ...'--device cpu --warmup 1 --steps 2 --peer torch --out'.split(' '),
      folder,
    ]);
    expect(exitCode).toBe(0);
    for (const title of ['Kernel time vs PyTorch', 'Kernel time against wall time', 'Top kernels']) {
      expect(stdout).toContain(title);
    }
    const line = readFileSync(join(folder, 'results.jsonl'), 'utf8').split('\n')[0]!;
    const { spans, peer } = profiledOf(interpretProfile(cellRecord.parse(JSON.parse(line))))!;
    expect(peer!.profile.torch).toBe(torchPython!.torchVersion);
    const phases = new Set(peer!.kernels.flatMap(({ ranges }) => ranges.map(({ name }) => name)));
    expect(phases).toEqual(new Set(['forward', 'backward', 'optimizer']));
    // Both multiply the same matrices: two in each attention, the rest by aten::mm. Forward, in two steps:
    const products = peer!.kernels.filter(
      ({ name, ranges }) => /^aten::b?mm$/.test(name) && ranges[0]?.name === 'forward',
    );
    expect(products).toHaveLength(2 * (2 * (7 + 2) + 1));
    const sums = levelSums(spans);
    expect(sums.map(({ level, addsUp }) => [level, addsUp])).toEqual([
      ['phases', true],
      ['layers', true],
      ['parts of a layer', true],
    ]);
  });
});
