import { renderHtml, renderMarkdown, renderTerminal } from '@roofline/reports';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { loadBenchmark } from '../../src/benchmarks/registry.ts';
import { latestRecords, type CellRecord } from '../../src/records/record.ts';
import { readResultsFile } from '../../src/records/results-file.ts';
import { reportOfRecords } from '../../src/report/report-of-records.ts';

const results = fileURLToPath(new URL('../../../../docs/results/', import.meta.url));
const reason = 'the kernel of the reason was not found';

/** Of each benchmark that has records in this repository a few of those, as if none of them had been measured. */
const failed = new Map<string, readonly CellRecord[]>();
for (const folder of readdirSync(results, { withFileTypes: true })) {
  if (!folder.isDirectory()) continue;
  const records = latestRecords(readResultsFile(`${results}${folder.name}/results.jsonl`)).slice(0, 6);
  const name = records[0]?.benchmark ?? '';
  if (name === '' || failed.has(name)) continue;
  const error = { name: 'CrashError', message: `${reason}\nand more` };
  failed.set(
    name,
    records.map((record) => ({ ...record, status: 'failed', result: null, error })),
  );
}

describe.each([...failed])('where no cell of %s was measured', (name, records) => {
  it('the table of the command has a row of each cell, says so once and why', async () => {
    const table = (await loadBenchmark(name)).toTable(records);
    const text = renderTerminal(table, { width: 200 });
    expect(table.rows.length).toBeGreaterThanOrEqual(records.length);
    expect(text).toContain(reason);
    expect(text).not.toMatch(/failed \(failed\)|undefined|NaN/);
  });

  it('the report begins with that, names each cell with the reason, and has no table without rows', async () => {
    const report = await reportOfRecords(records);
    expect(report.summary[0]).toBe('Nothing was measured; the report [tells why](#not-measured).');
    expect(report.summary.join(' ')).not.toContain('No element was wrong');
    const tables = report.sections.flatMap(({ blocks }) => blocks.filter((block) => block.kind === 'table'));
    expect(tables.filter(({ rows }) => rows.length === 0)).toEqual([]);
    const list = tables.find(({ id }) => id === 'cells-not-measured')!;
    const describeCell = (await loadBenchmark(name)).describe;
    expect(list.rows.map((row) => [row['cell'], row['why']])).toEqual(
      records.map(() => [expect.any(String), reason]),
    );
    expect(list.rows[0]!['cell']).toBe(describeCell((await loadBenchmark(name)).cellOf(records[0]!)));
    for (const text of [renderMarkdown(report), renderHtml(report)]) {
      expect(text).toContain(reason);
      expect(text).not.toMatch(/failed \(failed\)|undefined/);
    }
  });
});

it('has records of all benchmarks that the repository has', () => {
  expect([...failed.keys()].sort()).toEqual([
    'allreduce',
    'attention',
    'compile',
    'ddp',
    'e2e',
    'flash',
    'memory',
    'overhead',
    'precision',
    'profile',
    'warmup',
  ]);
});
