import { describe, expect, it } from 'vitest';
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
    const { rows } = JSON.parse(stdout);
    expect(rows.map((row: { verdict: string }) => row.verdict)).toEqual(['agrees', 'agrees', 'agrees']);
    expect(exitCode).toBe(0);
  });

  it('roofline e2e --peer torch gives the ratio', async () => {
    const folder = temporaryFolder();
    const { exitCode, stdout, stderr } = await runCli(
      [
        ...'e2e --d-model 16 --d-ff 32 --layers 1 --heads 2 --vocab 50 --context 8 --mode train-step'.split(
          ' ',
        ),
        ...'--device cpu --warmup 1 --steps 3 --peer torch --json --out'.split(' '),
        folder,
      ],
      { XDG_CACHE_HOME: folder },
    );
    expect(stderr).toContain('[1/1]');
    expect(exitCode).toBe(0);
    const [row] = JSON.parse(stdout).rows;
    expect(row.peerMs).toBeGreaterThan(0);
    expect(row.ratio).toBeCloseTo(row.medianMs / row.peerMs, 6);
    expect(row.ratioLow).toBeLessThanOrEqual(row.ratio);
  });
});
