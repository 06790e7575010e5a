import { globSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, it } from 'vitest';
import { formatMeasured, formatPercent, formatRatio } from '../../packages/reports/src/index.ts';
import { readResults, ratioOfMedians, summarize } from '../../packages/bench-harness/src/index.ts';
import { pictures } from '../../scripts/write-results.ts';

interface Samples {
  deviceMs: number[];
  phasesMs: { optimizer?: number[] };
  work: { optimizer?: { bytes: number } };
  memory: { peakAllocatedBytes: number };
  peer: { deviceMs: number[]; peakAllocatedBytes: number };
}

const page = readFileSync('README.md', 'utf8');
const records = ['h200-float32', 'h200-bfloat16'].flatMap((name) =>
  readResults(resolve('docs/results', name)),
);
const samplesOf = (size: string, mode: string, dtype: string) => {
  const record = records.find(
    ({ parameters: of }) => of['size'] === size && of['mode'] === mode && of['dtype'] === dtype,
  );
  return record!.result as unknown as Samples;
};
const milliseconds = (samples: number[]) =>
  formatMeasured(summarize(samples).median, { kind: 'duration', unit: 'ms' });

const rows = page
  .split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .filter(([, , mode = '']) => ['forward', 'forward-backward', 'train-step'].includes(mode));

it("the README's table has a row for each model and mode", () => expect(rows).toHaveLength(15));

it.each(rows.map(([, size, mode, ...cells]) => [size!, mode!, cells] as const))(
  "the README's figures of %s, %s are those of the records",
  (size, mode, cells) => {
    const [float32, bfloat16] = ['float32', 'bfloat16'].map((dtype) => samplesOf(size, mode, dtype));
    const times = [float32!, bfloat16!].flatMap(({ deviceMs, peer }) => [
      milliseconds(deviceMs),
      milliseconds(peer.deviceMs),
      formatRatio(ratioOfMedians(deviceMs, peer.deviceMs).ratio),
    ]);
    const memory = [float32!, bfloat16!].map(({ memory, peer }) =>
      formatRatio(memory.peakAllocatedBytes / peer.peakAllocatedBytes),
    );
    expect(cells.slice(0, 8)).toEqual([...times, ...memory]);
  },
);

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
const besidePyTorch = samplesByCell(
  ...['h200-compiled-peer', 'h200-compiled-float32', 'h200-compiled-float32-2.7b'],
);
const besideEager = samplesByCell(
  ...['h200-compiled-steps', 'h200-compiled-2.7b'],
  ...['h200-compiled-steps-float32', 'h200-compiled-2.7b-float32'],
);
const compiledRows = page
  .split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .filter(([, , , mode = '']) => ['forward', 'forward-backward', 'train-step'].includes(mode));

it("the README's table of compiled steps has a row for each that was measured next to PyTorch", () =>
  expect(compiledRows).toHaveLength(besidePyTorch.size));

it.each(compiledRows.map(([, ...cells]) => [cells.slice(0, 4).join(' '), cells.slice(4, 7)] as const))(
  "the README's figures of %s, compiled, are those of the records",
  (cell, figures) => {
    const { deviceMs, peer } = besidePyTorch.get(`${cell} compiled`)!;
    expect(figures).toEqual([
      milliseconds(deviceMs),
      milliseconds(peer.deviceMs),
      formatRatio(ratioOfMedians(deviceMs, peer.deviceMs).ratio),
    ]);
  },
);

it('a step of the README is no faster than its parts, beyond the spread of its samples', () => {
  const phases = ['forward', 'forward-backward', 'train-step'];
  const medianOf = (cells: readonly string[], column: number) =>
    Number(cells[column]!.replace(/[^\d.]/g, ''));
  for (const column of [5, 6]) {
    for (const row of compiledRows) {
      const [, size, context, mode, dtype] = row;
      const part = compiledRows.find(
        ([, s, c, m, d]) =>
          s === size && c === context && d === dtype && m === phases[phases.indexOf(mode!) - 1],
      );
      if (part)
        expect({ row, slower: medianOf(row, column) > 0.99 * medianOf(part, column) }).toEqual({
          row,
          slower: true,
        });
    }
  }
});

it("the README's range of compiled over eager steps of 2.7b is that of the records", () => {
  const ratios = [...besideEager.keys()]
    .filter((cell) => cell.startsWith('2.7b') && cell.endsWith('bfloat16 compiled'))
    .map((cell) => {
      const eager = besideEager.get(cell.replace(/compiled$/, 'eager'))!.deviceMs;
      return ratioOfMedians(besideEager.get(cell)!.deviceMs, eager).ratio;
    });
  const [least, most] = [Math.min(...ratios), Math.max(...ratios)].map((ratio) => ratio.toFixed(2));
  expect(page.replaceAll('\n', ' ')).toContain(`compiled ones of 2.7b take ${least} to ${most} of the time`);
});

it("the optimizer's share of a copy in its README is that of the records", () => {
  const shares = ['small', '2.7b'].map((size) => {
    const { work, phasesMs } = samplesOf(size, 'train-step', 'float32');
    const perSecond = work.optimizer!.bytes / (summarize(phasesMs.optimizer!).median / 1000);
    const { ceilings } = records.find(({ parameters: of }) => of['dtype'] === 'float32')!;
    return formatPercent(perSecond / ceilings!.copyBytesPerSecond, 2);
  });
  const readme = readFileSync('packages/optim/README.md', 'utf8').replaceAll('\n', ' ');
  expect(readme).toContain(`at ${shares[0]} (small) to ${shares[1]} (2.7b) of the speed of a plain copy`);
});

it("what the handbook says of compiled steps against eager ones is the records'", () => {
  const gains = [256, 512].map((context) => {
    const [compiled, eager] = ['compiled', 'eager'].map(
      (execution) => besideEager.get(`2.7b ${context} train-step bfloat16 ${execution}`)!.deviceMs,
    );
    return ratioOfMedians(compiled!, eager!).ratio.toFixed(2);
  });
  const handbook = readFileSync('docs/handbook/compile-a-step.md', 'utf8').replaceAll('\n', ' ');
  expect(handbook).toContain(`takes ${gains[0]} to ${gains[1]} of the eager one's time`);
});

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
