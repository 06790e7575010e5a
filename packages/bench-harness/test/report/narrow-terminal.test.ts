import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { renderTerminal, type Table } from '@roofline/reports';
import { describe, expect, it } from 'vitest';
import { benchmarksOf } from '../../src/benchmarks/registry.ts';
import { readResults } from '../../src/records/results-folder.ts';
import { compareRecords, comparisonTable } from '../../src/report/compare.ts';

const results = fileURLToPath(new URL('../../../../docs/results', import.meta.url));
const folders = readdirSync(results).filter((name) => existsSync(join(results, name, 'results.jsonl')));

/** Rows of a table, evenly chosen: more of them take time and have the same columns. */
const ROWS = 16;

/** The tables that commands print of the records of a folder. */
async function tablesOf(folder: string): Promise<Table[]> {
  const all = readResults(join(results, folder));
  const benchmarks = [...(await benchmarksOf(all)).values()];
  const records = [...Map.groupBy(all, ({ benchmark }) => benchmark).values()].flatMap((of) =>
    of.filter((_, index) => index % Math.ceil(of.length / ROWS) === 0),
  );
  return [
    ...benchmarks.map(({ name, toTable }) => toTable(records.filter(({ benchmark }) => benchmark === name))),
    comparisonTable(await compareRecords(records, records)),
  ];
}

/** The columns that a terminal leaves out, by their labels. */
const leftOut = (text: string) =>
  /columns leave out: (.*?)\. \d+ show/s.exec(text.replaceAll(/\n */g, ' '))?.[1] ?? '';

describe('no terminal shows a number and hides its interval', () => {
  it.each(folders)('%s', async (folder) => {
    for (const table of await tablesOf(folder)) {
      for (let width = 120; width >= 40; width -= 8) {
        const hidden = leftOut(renderTerminal(table, { width })).split('; ');
        const isHidden = (key: string) => {
          const { label } = table.columns.find((column) => column.key === key)!;
          return hidden.some((heading) => heading === label || heading.startsWith(`${label} (`));
        };
        const intervals = table.columns.filter(
          ({ label, uncertaintyKey }) => label === '95 % interval' || uncertaintyKey !== undefined,
        );
        for (const { key, qualifies, uncertaintyKey } of intervals) {
          if (qualifies !== undefined) expect([key, isHidden(key)]).toEqual([key, isHidden(qualifies)]);
          // One with its own spread stands by itself.
          else expect(uncertaintyKey).toBeDefined();
        }
      }
    }
  });

  it.each(folders)('%s: none goes at 80 columns where all of them have room', async (folder) => {
    const withInterval =
      ({ columns }: Table) =>
      (column: Table['columns'][number]) =>
        [column.qualifies, column.uncertaintyKey].some((key) => key !== undefined) ||
        columns.some(({ qualifies }) => qualifies === column.key);
    for (const table of await tablesOf(folder)) {
      const firstNumber = table.columns.findIndex(({ kind }) => kind !== 'text');
      const least = table.columns.filter((column, i) => i < firstNumber || withInterval(table)(column));
      if (least.length === 0) continue;
      if (leftOut(renderTerminal({ ...table, columns: least }, { width: 80 })) !== '') continue;
      const text = leftOut(renderTerminal(table, { width: 80 }));
      for (const { label } of table.columns.filter(withInterval(table))) {
        const hidden = text.split('; ').some((each) => each === label || each.startsWith(`${label} (`));
        expect([table.id, label, hidden]).toEqual([table.id, label, false]);
      }
    }
  });

  it('at 80 columns a ratio over PyTorch has its interval, and a median its deviation', async () => {
    const [table] = await tablesOf('h200-bfloat16');
    const text = renderTerminal(table!, { width: 80 });
    expect(text).toMatch(/small +train-step +! 8\.6 ± 1\.7 .* 0\.31× +0\.278–0\.356/);
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
  });
});
