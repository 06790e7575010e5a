import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { CellRecord } from '../../src/records/record.ts';
import { outOfMemoryRecord, toyRecord, toyResult } from '../fixtures/records.ts';
import { runMain } from '../fixtures/run-main.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

/** What `roofline compare` says of two files with these records. */
function compare(before: readonly CellRecord[], after: readonly CellRecord[], ...more: string[]) {
  const folder = temporaryFolder();
  const [a, b] = Object.entries({ before, after }).map(([name, records]) => {
    const path = join(folder, `${name}.jsonl`);
    writeFileSync(path, records.map((record) => `${JSON.stringify(record)}\n`).join(''));
    return path;
  });
  return runMain(['compare', a!, b!, ...more]);
}

const slower = toyRecord({}, { result: toyResult(1.2) });

// A workflow's own summary is not for these.
beforeEach(() => void delete process.env['GITHUB_STEP_SUMMARY']);

describe('roofline compare', () => {
  it('exits with 0 and reports ratios, whatever they are, when no limit is given', async () => {
    const { exitCode, stdout, stderr } = await compare([toyRecord()], [slower]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toMatch(/Before \(ms\) +After \(ms\)[^]* 10\.0 +12\.0 /);
    expect(stdout).toContain('1 of 1 got slower beyond noise: e2e: small · context 16');
  });

  it('exits with 1 over the limit, and names what got slower and what was lost', async () => {
    const { exitCode, stderr } = await compare(
      [toyRecord(), toyRecord({ context: 32 })],
      [slower, outOfMemoryRecord({ context: 32 })],
      '--fail-over',
      '1.05',
    );
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/2 of 2 cells got worse by more than 1\.05× allows/);
    expect(stderr).toMatch(/e2e: small · context 16 · batch 2 · train-step · float32: 1\.20× the time \(/);
    expect(stderr).toContain('e2e: small · context 32 · batch 2 · train-step · float32: out of memory now');
  });

  it('exits with 0 under the limit, and prints only JSON where asked', async () => {
    const { exitCode, stdout, stderr } = await compare(
      [toyRecord()],
      [slower],
      '--fail-over',
      '1.3',
      '--json',
    );
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({
      failOver: 1.3,
      regressions: [],
      rows: [{ verdict: 'slower' }],
    });
  });

  it('exits with 2 where the two have no cell in common, and says what keeps them apart', async () => {
    const [short, long] = [toyRecord(), toyRecord({ context: 64 })];
    const half = toyRecord({ context: 64, dtype: 'bfloat16' });
    const { exitCode, stderr } = await compare([short, toyRecord({ context: 32 })], [long]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain(
      'no cell in common: context 16 or 32 before, 64 after. Compare sweeps of the same',
    );
    const both = await compare([short], [half]);
    expect(both.stderr).toContain('context 16 before, 64 after; dtype float32 before, bfloat16 after.');
    const crossed = [long, toyRecord({ dtype: 'bfloat16' })];
    expect((await compare([short, half], crossed)).stderr).toContain('no cell in common. Compare');
    const other = await compare([short], [{ ...short, benchmark: 'profile' }]);
    expect(other.stderr).toContain('no cell in common: benchmark e2e before, profile after.');
  });

  it('exits with 1 over any limit where a cell that was measured is not there', async () => {
    const { exitCode, stderr } = await compare(
      [toyRecord(), toyRecord({ context: 32 }), outOfMemoryRecord({ context: 64 })],
      [toyRecord()],
      '--fail-over',
      '9',
    );
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^1 of 2 cells got worse/);
    expect(stderr).toContain('e2e: small · context 32 · batch 2 · train-step · float32: not there now');
  });

  it.each([
    ['5%', 1.05],
    ['0.5 %', 1.005],
    ['1.2', 1.2],
  ])('takes %s for a limit', async (given, limit) => {
    const { stdout } = await compare([toyRecord()], [toyRecord()], '--fail-over', given, '--json');
    expect(JSON.parse(stdout).failOver).toBeCloseTo(limit, 12);
  });

  it.each(['', '-5%', 'a%', '0', 'five'])("refuses '%s' as a limit", async (given) => {
    const { exitCode, stderr } = await compare([toyRecord()], [toyRecord()], `--fail-over=${given}`);
    expect(exitCode).toBe(2);
    expect(stderr).toContain('as 1.05, or a share, as 5%');
  });

  it("appends what it found to a workflow's summary", async () => {
    const path = join(temporaryFolder(), 'summary.md');
    process.env['GITHUB_STEP_SUMMARY'] = path;
    await compare([toyRecord()], [slower], '--fail-over', '5%');
    await compare([toyRecord()], [toyRecord()], '--fail-over', '5%');
    const [worse, same] = readFileSync(path, 'utf8').split(/^(?=## )/m);
    expect(worse).toMatch(
      /^## 1 cell got worse than 1\.05× allows\n\n- \*\*e2e: small .*\*\*: 1\.20× the time/,
    );
    expect(worse).toMatch(/\| +Before \(ms\) \|/);
    expect(same).toMatch(/^## No cell got worse than 1\.05× allows\n/);
    process.env['GITHUB_STEP_SUMMARY'] = join(path, 'no', 'file');
    const refused = await compare([toyRecord()], [toyRecord()]);
    expect(refused.exitCode).toBe(2);
    expect(refused.stderr).toContain('which GITHUB_STEP_SUMMARY names');
  });

  it('counts what is in only one of the two, whatever else is paired twice', async () => {
    const longer = toyRecord({}, { settings: { ...toyRecord().settings, warmup: 9 }, key: 'longer' });
    const { stdout } = await compare([toyRecord(), longer], [toyRecord(), toyRecord({ context: 64 })]);
    expect(stdout).toContain('1 cell is in one of the two alone.');
  });
});
