import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { formatPercent } from '../../packages/reports/src/index.ts';
import {
  loadBenchmark,
  readResults,
  ratioOfMedians,
  summarize,
  type CellRecord,
} from '../../packages/bench-harness/src/index.ts';
import {
  type Cell,
  compiledCells,
  leadRange,
  pagesWithTables,
  withTables,
} from '../../scripts/benchmark-tables.ts';
import { machineNames } from '../../packages/bench-harness/src/plan/kinds.ts';
import { machinePath } from '../../packages/bench-harness/src/plan/machine.ts';
import { machineOfFolders, machineText } from '../../scripts/plans.ts';
import { studyPlan } from '../../packages/bench-harness/src/study/plan.ts';
import { studyItems } from '../../scripts/study-items.ts';
import { pictures, reportOf } from '../../scripts/write-results.ts';

interface Samples {
  deviceMs: number[];
  phasesMs: { optimizer?: number[] };
  work: { optimizer?: { bytes: number } };
}

const inOneLine = (path: string) => readFileSync(path, 'utf8').replaceAll('\n', ' ');

/** The samples of each cell of these records. */
const samplesByCell = (...folders: string[]) =>
  new Map(
    folders
      .flatMap((folder) => readResults(resolve('docs/results', folder)))
      .map(({ parameters: of, result }) => [
        [of['size'], of['context'], of['mode'], of['dtype'], of['execution']].join(' '),
        result as unknown as Samples,
      ]),
  );
const besideEager = samplesByCell(
  ...['h200-compiled-steps', 'h200-compiled-2.7b'],
  ...['h200-compiled-steps-float32', 'h200-compiled-2.7b-float32'],
);

it.each(pagesWithTables)(
  'the tables of %s are those of the records: `npm run results` makes them',
  (page) => {
    const text = readFileSync(page, 'utf8');
    expect(text).toContain('<!-- records: ');
    expect(text.match(/<!-- records: /g)).toHaveLength(text.match(/<!-- end -->/g)!.length);
    expect(withTables(text)).toBe(text);
  },
);

it('an item of the write-ups has runs of the plan or says why not, and each run makes an item', () => {
  for (const { runs = [], lacks } of studyItems) expect(runs.length > 0 || lacks !== undefined).toBe(true);
  const made = studyItems.flatMap(({ runs = [] }) => runs);
  const names = studyPlan.flatMap(({ runs }) => runs.map(({ name }) => name));
  // What no write-up has: a loss in each precision, and what became of compiled steps.
  const more = ['benchmarking_mixed_precision.loss', 'torch_compile.programs'];
  expect(names.filter((name) => !made.some((start) => name.startsWith(start)))).toEqual(more);
  expect(made.filter((start) => !names.some((name) => name.startsWith(start)))).toEqual([]);
});

it('a table of a name that there is none of is refused', () => {
  expect(() => withTables('<!-- records: eagre -->\n<!-- end -->')).toThrow(
    "under the name 'eagre': compiled steps, ",
  );
});

it("the README's range of a compiled step over PyTorch's is that of the records", () => {
  const [least, most] = leadRange();
  expect(inOneLine('README.md')).toContain(`A compiled step takes ${least} to ${most} of`);
});

it('a step is no faster than its parts, beyond the spread of its samples', () => {
  const modes = ['forward', 'forward-backward', 'train-step'];
  const cells = compiledCells();
  const work = ({ size, context, dtype }: Cell) => [size, context, dtype].join(' ');
  const pairs = cells.flatMap((whole) =>
    cells
      .filter(
        (part) => work(part) === work(whole) && modes.indexOf(part.mode) === modes.indexOf(whole.mode) - 1,
      )
      .map((part) => ({ whole, part })),
  );
  expect(pairs.length).toBeGreaterThanOrEqual(10);
  for (const { whole, part } of pairs) {
    expect(whole.oursMs).toBeGreaterThan(0.99 * part.oursMs);
    expect(whole.theirsMs).toBeGreaterThan(0.99 * part.theirsMs);
  }
});

it('the range of compiled over eager steps of 2.7b is that of the records', () => {
  const ratios = [...besideEager.keys()]
    .filter((cell) => cell.startsWith('2.7b') && cell.endsWith('bfloat16 compiled'))
    .map((cell) => {
      const eager = besideEager.get(cell.replace(/compiled$/, 'eager'))!.deviceMs;
      return ratioOfMedians(besideEager.get(cell)!.deviceMs, eager).ratio;
    });
  const [least, most] = [Math.min(...ratios), Math.max(...ratios)].map((ratio) => ratio.toFixed(2));
  expect(inOneLine('docs/benchmarks.md')).toContain(
    `compiled ones of 2.7b take ${least} to ${most} of the time`,
  );
});

it("the optimizer's share of a copy in its README is that of the records", () => {
  const records = readResults(resolve('docs/results/h200-float32'));
  const shares = ['small', '2.7b'].map((size) => {
    const { result, ceilings } = records.find(
      ({ parameters: of }) => of['size'] === size && of['mode'] === 'train-step',
    )!;
    const { work, phasesMs } = result as unknown as Samples;
    const perSecond = work.optimizer!.bytes / (summarize(phasesMs.optimizer!).median / 1000);
    return formatPercent(perSecond / ceilings!.copyBytesPerSecond, 2);
  });
  const readme = inOneLine('packages/optim/README.md');
  expect(readme).toContain(`at ${shares[0]} (small) to ${shares[1]} (2.7b) of the speed of a plain copy`);
});

it("what the handbook says of compiled steps against eager ones is the records'", () => {
  const gains = [256, 512].map((context) => {
    const [compiled, eager] = ['compiled', 'eager'].map(
      (execution) => besideEager.get(`2.7b ${context} train-step bfloat16 ${execution}`)!.deviceMs,
    );
    return ratioOfMedians(compiled!, eager!).ratio.toFixed(2);
  });
  const handbook = inOneLine('docs/handbook/compile-a-step.md');
  expect(handbook).toContain(`takes ${gains[0]} to ${gains[1]} of the eager one's time`);
});

it.each(machineNames)(
  'what plans know of %s is what the records say: `npm run results` writes it',
  (name) => {
    expect(readFileSync(machinePath(name), 'utf8')).toBe(machineText(machineOfFolders(name)));
  },
);

it('the pictures are those of the records: `npm run results` draws them', async () => {
  const stale = [...(await pictures())].filter(
    ([path, svg]) => readFileSync(resolve('docs', path), 'utf8') !== svg,
  );
  expect(stale.map(([path]) => path)).toEqual([]);
});

it.each(globSync('docs/results/*/report.md'))('no table of %s has two headings alike', (path) => {
  const lines = readFileSync(path, 'utf8').split('\n');
  const isRule = (line = '') => /^\|[\s:|-]+\|$/.test(line);
  const tables = lines.filter((line, i) => line.startsWith('|') && isRule(lines[i + 1]));
  expect(tables).not.toHaveLength(0);
  for (const headings of tables.map((line) =>
    line
      .split('|')
      .map((cell) => cell.trim())
      .filter(Boolean),
  ))
    expect(headings).toEqual([...new Set(headings)]);
});

it.each(globSync('docs/results/*/results.jsonl').map((path) => dirname(path)))(
  'a page of %s alone begins with what was found',
  async (folder) => {
    const records = readResults(folder);
    const [{ title }, names] = [await reportOf([basename(folder)]), await benchmarkTitles(records)];
    expect(names).not.toContain(title);
    // A claim has its numbers.
    expect(title).toMatch(/[\d.]+(×| %| µs)/);
  },
);

async function benchmarkTitles(records: readonly CellRecord[]): Promise<string[]> {
  const names = [...new Set(records.map(({ benchmark }) => benchmark))];
  return Promise.all(names.map(async (name) => (await loadBenchmark(name)).title));
}
