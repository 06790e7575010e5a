import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { canonicalJson } from '../../src/records/json.ts';
import { studyDocument } from '../../src/study/document.ts';
import { measureRuns } from '../../src/study/measure-runs.ts';
import { stateOf } from '../../src/study/missing.ts';
import { studyPlan } from '../../src/study/plan.ts';
import { planRuns, type PlannedRun, type StudyPlace } from '../../src/study/planned-runs.ts';
import type { Problem } from '../../src/study/problem.ts';
import { writeStudy } from '../../src/study/write-study.ts';
import type { Plot } from '@roofline/reports';
import { collectiveRecord } from '../fixtures/collective-records.ts';
import { runMain } from '../fixtures/run-main.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

// Commands say by these where cells write, and which Python they take.
beforeAll(() => {
  vi.stubEnv('ROOFLINE_MEMORY_SNAPSHOTS', '');
  vi.stubEnv('ROOFLINE_PYTHON', '');
});
afterAll(() => void vi.unstubAllEnvs());

/** Three cells that take a second each. */
const rounding: Problem[] = studyPlan
  .filter(({ id }) => /accumulation|benchmarking_mixed_precision/.test(id))
  .map((problem) => ({ ...problem, runs: problem.runs.slice(0, 1) }));

const placeIn = (folder: string): StudyPlace => ({ folder, form: 'quick', device: 'cpu' });

async function measure(place: StudyPlace, { untilMs = Infinity, fresh = false } = {}): Promise<string[]> {
  const finished: string[] = [];
  await measureRuns(await planRuns(rounding, place), {
    ...{ untilMs, fresh, signal: new AbortController().signal, onRun: () => {}, onStatus: () => {} },
    onRefused: ({ run }, why) => finished.push(`${run.name}: ${why}`),
    observer: { cellFinished: ({ parameters }) => finished.push(String(parameters['dtype'] ?? 'sums')) },
  });
  return finished;
}

describe('a study', () => {
  it('has each command in words that the command line takes, in both forms, under a name of its own', async () => {
    const names = studyPlan.flatMap(({ id, runs }) => {
      for (const { name } of runs) expect(name.startsWith(id)).toBe(true);
      return runs.map(({ name }) => name);
    });
    expect(new Set(names).size).toBe(names.length);
    for (const [form, device] of [
      ['full', 'cuda'],
      ['quick', 'cpu'],
    ] as const) {
      const runs = await planRuns(studyPlan, { folder: temporaryFolder(), form, device });
      // What is missing here is a library or a GPU, never a flag.
      for (const { hindrance } of runs) expect(hindrance ?? 'libgloo').toMatch(/libgloo|GPU|shim|PyTorch/);
      for (const { hindrance, cells } of runs)
        if (hindrance === null) expect(cells.length).toBeGreaterThan(0);
    }
  });

  it("shows each cell once among a problem's tables of one kind, however its runs divide the sizes", async () => {
    // Which cells there are does not depend on PyTorch, which is not everywhere.
    const withoutPeer = studyPlan.map((problem) => ({
      ...problem,
      runs: problem.runs.map((run) => ({
        ...run,
        words: { ...run.words, full: run.words.full?.replace(' --peer torch', '') ?? null },
      })),
    }));
    const runs = await planRuns(withoutPeer, { folder: temporaryFolder(), form: 'full', device: 'cuda' });
    const shown = runs.flatMap(({ problem, run, cells }) =>
      run.shows.flatMap((start) =>
        cells.map(({ cell }) => [`${problem.id} ${start}`, canonicalJson(cell)] as const),
      ),
    );
    for (const [kind, of] of Map.groupBy(shown, ([kind]) => kind))
      expect([kind, new Set(of.map(([, cell]) => cell)).size]).toEqual([kind, of.length]);
    // Beside PyTorch: two ways to run, four head dimensions, four sequences and two dtypes.
    expect(shown.filter(([kind]) => kind === 'pytorch_attention beside-torch')).toHaveLength(64);
  });

  it('measures as much as there is time for, goes on, and measures older records again if asked', async () => {
    const place = placeIn(temporaryFolder());
    expect(await measure(place, { untilMs: performance.now() + 10 })).toEqual([]);
    expect(await measure(place)).toEqual(['sums', 'float16', 'bfloat16']);
    expect(await measure(place)).toEqual([]);
    const before = await planRuns(rounding, place);
    expect(stateOf(before)).toMatchObject({ planned: 3, settled: 3, older: 0, leftMs: 0 });

    const makeOlder = ({ out }: PlannedRun) => {
      const path = join(out, 'results.jsonl');
      writeFileSync(path, readFileSync(path, 'utf8').replaceAll(/"commit":"\w+"/g, '"commit":"0123abc"'));
    };
    const document = async () => JSON.stringify(await studyDocument(await planRuns(rounding, place)));
    makeOlder(before[0]!);
    expect(stateOf(await planRuns(rounding, place))).toMatchObject({ settled: 3, older: 1 });
    expect(await document()).toContain('mixed_precision_accumulation (1). `roofline study --fresh`');
    expect(await measure(place, { fresh: true })).toEqual(['sums']);
    expect(stateOf(await planRuns(rounding, place))).toMatchObject({ settled: 3, older: 0 });
    for (const run of before) makeOlder(run);
    expect(await document()).toContain('All 3 cells are of another state of the code than this one.');
  });

  it('has the time of a budget of weeks, which is longer than a timer of Node lasts', async () => {
    const untilMs = performance.now() + 30 * 24 * 60 * 60 * 1000;
    expect(await measure(placeIn(temporaryFolder()), { untilMs })).toEqual(['sums', 'float16', 'bfloat16']);
  });

  it('shows cells in the order of the plan, whichever were measured first', async () => {
    const place = placeIn(temporaryFolder());
    await measure(place);
    const path = join((await planRuns(rounding, place))[1]!.out, 'results.jsonl');
    const lines = readFileSync(path, 'utf8').trim().split('\n');
    writeFileSync(path, `${lines.toReversed().join('\n')}\n`);
    const { records } = (await planRuns(rounding, place))[1]!;
    expect(records.map(({ parameters }) => parameters['dtype'])).toEqual(['float16', 'bfloat16']);
  });

  it("goes on where its time ended in the middle of a run's first cell, with what other runs have", async () => {
    const place = placeIn(temporaryFolder());
    const controller = new AbortController();
    let started = 0;
    await measureRuns(await planRuns(rounding, place), {
      ...{ untilMs: Infinity, fresh: false, signal: controller.signal },
      ...{ onRun: () => {}, onRefused: () => {}, onStatus: () => {} },
      observer: { cellStarted: () => void (++started === 2 && controller.abort()) },
    });
    const runs = await planRuns(rounding, place);
    expect(runs.map(({ records }) => records.length)).toEqual([1, 0]);
    expect(readFileSync(join(runs[1]!.out, 'results.jsonl'), 'utf8')).toBe('');
    expect(JSON.stringify(await studyDocument(runs))).toContain('9.95312500 in float16');
    expect(await measure(place)).toEqual(['float16', 'bfloat16']);
  });

  it('goes on where the folder of a run is of another machine, and leaves that as it is', async () => {
    const folder = temporaryFolder();
    const place = placeIn(folder);
    await measure(place);
    const [sums, dtypes] = (await planRuns(rounding, place)).map(({ out }) => join(out, 'results.jsonl'));
    const elsewhere = readFileSync(sums!, 'utf8')
      .replace(/"cpuModel":"[^"]*"/, '"cpuModel":"Another CPU"')
      .replace('"status":"ok"', '"status":"failed"');
    writeFileSync(sums!, elsewhere);
    writeFileSync(dtypes!, readFileSync(dtypes!, 'utf8').split('\n', 1)[0]!);
    const problems = rounding.map(({ id }) => id).join();
    const words = ['study', '--device', 'cpu', '--form', 'quick', '--problem', problems];
    expect(await measure(place)).toEqual([
      expect.stringMatching(/^mixed_precision_accumulation: .* of another sweep \(device Another CPU/),
      'bfloat16',
    ]);
    expect(readFileSync(sums!, 'utf8')).toBe(elsewhere);
    const { exitCode, stderr } = await runMain([...words, '--out', folder]);
    expect(exitCode).toBe(2);
    expect(stderr.replaceAll(/\n */g, ' ')).toMatch(
      /mixed_precision_accumulation is not measured: .*or --force-new .* Its command is `roofline precision --study accum/,
    );
    expect(readFileSync(join(folder, 'study.md'), 'utf8')).toContain('Mixed precision');
  });

  it('writes what was measured in four forms, with its figures, and names what was not with its command', async () => {
    const folder = temporaryFolder();
    const place = placeIn(folder);
    await measure({ ...place });
    const [sums, ...others] = await planRuns(rounding, place);
    const missing = {
      ...others[0]!,
      records: [],
      cells: others[0]!.cells.map((cell) => ({ ...cell, record: null, isSettled: false })),
    };
    const { files } = await writeStudy(await studyDocument([sums!, missing]), folder);
    for (const name of ['study.html', 'study.md', 'study.tex', 'study.typ']) {
      const text = readFileSync(
        files.find((file) => file.endsWith(name))!,
        'utf8',
      );
      expect(text).toContain('9.95312500 in float16');
      expect(text).toContain('1 of 3 cells are measured');
      expect(text).not.toContain('Under autocast to bfloat16');
    }
    const markdown = readFileSync(join(folder, 'study.md'), 'utf8');
    expect(markdown).toContain(
      'roofline precision --study dtypes --dtype float16,bfloat16 --device cpu --out',
    );
    expect(markdown.indexOf('Accumulation in mixed')).toBeLessThan(markdown.indexOf('## Mixed precision'));
  });

  it('replaces its own figures, and keeps what else lies in their folder', async () => {
    const folder = temporaryFolder();
    const report = await studyDocument(await planRuns(rounding, placeIn(folder)));
    const plot: Plot = {
      ...{ kind: 'plot', id: 'a', title: 'A', marks: 'line' },
      ...{ x: { label: 'x', scale: 'linear' }, y: { label: 'y', scale: 'linear' } },
      series: [{ name: 'a', points: [{ x: 1, y: 1 }] }],
    };
    const figures = join(folder, 'figures');
    mkdirSync(figures);
    writeFileSync(join(figures, 'architecture.svg'), '<svg/>');
    await writeStudy(report, folder, [plot]);
    expect(readdirSync(figures)).toEqual(expect.arrayContaining(['a-light.svg', 'architecture.svg']));
    await writeStudy(report, folder);
    expect(readdirSync(figures)).toEqual(['architecture.svg']);
  });

  it('says what is in the place of its figures or its document, and leaves it there', async () => {
    const report = await studyDocument(await planRuns(rounding, placeIn('results')));
    const taken = temporaryFolder();
    writeFileSync(join(taken, 'figures'), 'mine');
    await expect(writeStudy(report, taken)).rejects.toThrow(/figures \(EEXIST\): remove what is there/);
    expect(readFileSync(join(taken, 'figures'), 'utf8')).toBe('mine');
    const folder = temporaryFolder();
    mkdirSync(join(folder, 'study.md'));
    await expect(writeStudy(report, folder)).rejects.toThrow(/study\.md \(EISDIR\): remove what is there/);
  });

  it('draws both backends in one figure, whatever their runs', async () => {
    const problem = studyPlan.find(({ id }) => id === 'distributed_communication_single_node')!;
    const of = (run: (typeof problem.runs)[number], backend: 'gloo' | 'nccl') => ({
      ...{ problem, run, form: 'full' as const, words: ['allreduce'], out: 'results', cells: [] },
      ...{
        hindrance: null,
        records: [1e6, 1e7].map((bytes) => collectiveRecord({ backend, ranks: 2, bytes })),
      },
    });
    const report = await studyDocument([of(problem.runs[0]!, 'nccl'), of(problem.runs[1]!, 'gloo')]);
    const blocks = report.sections.flatMap((section) => section.blocks);
    const plot = blocks.find(
      (block): block is Plot =>
        block.kind === 'plot' && block.id === `${problem.id}-time-by-size-allreduce-float32-2`,
    );
    expect(
      plot!.series.map(({ name }) => name).filter((name) => /gloo|nccl/i.test(name)).length,
    ).toBeGreaterThan(1);
    expect(report.sections[0]!.text!.join()).toContain('gloo, 2 ranks: 2.00 ms for 1 MB');
  });

  it('prints its plan without measuring', async () => {
    const { stdout, exitCode } = await runMain([
      ...['study', '--plan', '--form', 'full', '--device', 'cuda', '--out', temporaryFolder(), '--json'],
    ]);
    expect(exitCode).toBe(0);
    const { planned, settled, leftMs, rows } = JSON.parse(stdout);
    expect(planned).toBeGreaterThan(400);
    expect(settled).toBe(0);
    expect(leftMs).toBeGreaterThan(600_000);
    expect(rows.length).toBe(studyPlan.flatMap(({ runs }) => runs).length);
  });

  it('refuses an unknown problem and a time without a unit', async () => {
    expect((await runMain(['study', '--problem', 'nsys_profiles', '--plan'])).stderr).toContain(
      'Did you mean nsys_profile?',
    );
    expect((await runMain(['study', '--budget', '10'])).stderr).toContain(
      '--budget wants a time, as 90s, 10m or 1h',
    );
  });
});
