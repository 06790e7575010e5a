import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { renderMarkdown } from '@roofline/reports';
import { describe, expect, it } from 'vitest';
import { benchmarkEntries } from '../../src/benchmarks/list.ts';
import { loadBenchmark } from '../../src/benchmarks/registry.ts';
import { commandEntries } from '../../src/commands/all.ts';
import { readResults } from '../../src/records/results-folder.ts';
import { compareRecords } from '../../src/report/compare.ts';
import { reportOfRecords } from '../../src/report/report-of-records.ts';
import { loadTask } from '../../src/benchmarks/tasks.ts';
import { runSweep } from '../../src/runner/sweep.ts';
import { toyEnvironment } from '../fixtures/environment.ts';
import { toyRecord } from '../fixtures/records.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { tiny, tinyBenchmark, tinyTask } from '../fixtures/tiny-benchmark.ts';

const sources = fileURLToPath(new URL('../../src', import.meta.url));

/** What `module` imports as it is loaded, and what those import: packages, and files of this one. */
function loadedWith(module: string, seen = new Set<string>()): Set<string> {
  if (seen.has(module)) return seen;
  seen.add(module);
  const statics = /^(?:import|export) (?!type )(?:[^'"]*? from )?'([^']+)';$/gm;
  for (const [, name] of readFileSync(module, 'utf8').matchAll(statics)) {
    if (name!.startsWith('.')) loadedWith(join(dirname(module), name!), seen);
    else seen.add(name!);
  }
  return seen;
}

describe('the registry', () => {
  it('holds every folder of a benchmark under its own name', async () => {
    const folders = readdirSync(join(sources, 'benchmarks'), { withFileTypes: true });
    const names = folders.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    expect(benchmarkEntries.map(({ name }) => name)).toEqual(names.sort());
    for (const { name, definition } of benchmarkEntries) {
      expect((await definition()).name).toBe(name);
      expect((await loadTask(name)).name).toBe(name);
    }
    expect((await loadTask('first-op')).name).toBe('first-op');
    await expect(loadTask('third-op')).rejects.toThrow('no task third-op');
  });

  it('names the existing benchmarks where it has none of that name', async () => {
    await expect(loadBenchmark('e3e')).rejects.toThrow(
      `no benchmark e3e in this version; there are: ${benchmarkEntries.map(({ name }) => name).join(', ')}.`,
    );
  });

  it('gives commands that load', async () => {
    for (const { load } of commandEntries) expect((await load()).examples.length).toBeGreaterThan(0);
  });

  it('loads nothing of a benchmark before it is asked for, so that the command line starts fast', () => {
    const packagesOf = (program: string) =>
      [...loadedWith(join(sources, program))]
        .filter((name) => !name.startsWith('/') && !name.startsWith('node:'))
        .sort();
    // What reads the words is loaded with the command that they name; the list of commands is printed without.
    expect(packagesOf('cli/main.ts')).toEqual([]);
    // The entry of cuda that loads nothing of a GPU.
    expect(packagesOf('cli/parser.ts')).toEqual(['@roofline/cuda/host', 'yargs']);
    expect(packagesOf('commands/all.ts')).toEqual([]);
    // Before the version of Node.js is checked nothing is loaded that it may not be able to read.
    expect(packagesOf('cli.ts')).toEqual([]);
  });
});

describe('a benchmark of one folder and one entry', () => {
  it('gets records, a report and a comparison', async () => {
    const out = temporaryFolder();
    const { records } = await runSweep(tinyBenchmark, {
      parameters: { sizes: [2, 3], repeats: 3 },
      environment: toyEnvironment,
      ceilings: { matmulFlopsPerSecond: { float32: 1e12 }, copyBytesPerSecond: 1e11 },
      out,
      task: tinyTask,
    });
    expect(readResults(out)).toEqual(records);
    expect(records.map(({ benchmark, status, result }) => [benchmark, status, result])).toEqual([
      ['tiny', 'ok', { timesMs: [2, 3, 4], sums: [0, 2, 4] }],
      ['tiny', 'ok', { timesMs: [3, 4, 5], sums: [0, 3, 6] }],
    ]);

    const entries = [...benchmarkEntries, tiny];
    const report = await reportOfRecords([...records, toyRecord()], entries);
    expect(report.sections.map(({ id }) => id)).toEqual([
      ...['tiny', 'tiny-tiny-results'],
      ...['e2e', 'e2e-times', 'e2e-roof'],
      'runs',
    ]);
    expect(renderMarkdown(report)).toContain('|    2 | 3.0 ± 1.0 | ');
    const [first] = await compareRecords(records, records, entries);
    expect(first).toMatchObject({ cell: 'tiny: size 2', times: { beforeMs: 3 }, memoryRatio: null });
  });
});
