import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli } from '../fixtures/run-cli.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { torchPython } from '../fixtures/torch.ts';

type FoundRow = Readonly<Record<string, string | number>>;

const toySize = '--d-model 16 --d-ff 32 --layers 1 --heads 2 --vocab 50 --context 8';

async function runPrecision(words: string, root: string) {
  const out = join(root, 'out');
  const { exitCode, stdout } = await runCli([
    ...['precision', ...words.split(' ')],
    ...['--device', 'cpu', '--json', '--out', out],
  ]);
  expect(exitCode).toBe(0);
  return { rows: JSON.parse(stdout).rows as FoundRow[], out };
}

describe('roofline precision', () => {
  it('reports sums, dtypes and losses, and makes a report of them', async () => {
    const { rows, out } = await runPrecision(
      '--study accumulation,dtypes,loss --loss-steps 4',
      temporaryFolder(),
    );
    const findings = (study: string) =>
      rows.filter((row) => row['study'] === study).map(({ finding }) => finding);
    expect(findings('accumulation')).toEqual([
      ...['Sum: 10.00013351', 'Sum: 9.95312500', 'Sum: 10.00213623', 'Sum: 10.00213623'],
    ]);
    const dtypes = (low: string) => ['float32', low, 'float32', low, 'float32', 'float32'];
    for (const low of ['bfloat16', 'float16']) {
      const of = rows.filter(({ study }) => study === 'dtypes');
      expect(of.map((row) => row[low])).toEqual(dtypes(low));
      expect(of[1]!['finding']).toContain(`autocast to ${low}: ${low}`);
    }
    expect(findings('loss')).toHaveLength(3);
    const report = await runCli(['report', out]);
    expect(report.exitCode).toBe(0);
    expect(report.stdout).toContain('A thousand times 0.01 is 9.95312500 summed in float16');
  });

  it.skipIf(torchPython === null)(
    "bfloat16 gradients are within twice PyTorch's error, and steps are timed",
    async () => {
      const { rows } = await runPrecision(
        `${toySize} --study accuracy,speed --dtype float32,bfloat16 --mode train-step --warmup 1 --steps 2 --peer torch`,
        temporaryFolder(),
      );
      const accuracy = rows.find(({ study }) => study === 'accuracy')!;
      expect(accuracy['gradientRatio']).toBeLessThan(2);
      expect(rows.filter(({ study }) => study === 'speed').map(({ dtype }) => dtype)).toEqual([
        'float32',
        'bfloat16',
      ]);
    },
  );
});
