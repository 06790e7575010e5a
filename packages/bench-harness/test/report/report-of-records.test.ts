import { renderHtml } from '@roofline/reports';
import { describe, expect, it } from 'vitest';
import { reportOfRecords } from '../../src/report/report-of-records.ts';
import { toyEnvironment } from '../fixtures/environment.ts';
import { toyCell, toyRecord, toyResult } from '../fixtures/records.ts';

const warmup = toyRecord({}, { benchmark: 'warmup', parameters: { ...toyCell, warmup: 0 } });
const peer = {
  ...{ status: 'ok', torch: '2.11.0', python: '3.12.0', device: 'Toy GPU', phasesMs: {} },
  ...{ deviceMs: [20, 20.1, 19.9, 20], wallMs: [20, 20.1, 19.9, 20] },
  ...{ peakAllocatedBytes: 2 ** 21, peakReservedBytes: 2 ** 22 },
} as const;
const withSteps = (steps: number) => ({ settings: { ...toyRecord().settings, steps } });
const titles = async (...records: ReturnType<typeof toyRecord>[]) =>
  (await reportOfRecords(records)).sections.map(({ id, title, level = 1 }) => `${level} ${id} ${title}`);

describe('reportOfRecords', () => {
  it('joins different benchmarks: each is a part, ids and links carry their names, and the page is whole', async () => {
    expect(await titles(toyRecord(), warmup)).toEqual([
      '1 e2e Steps',
      ...['2 e2e-times Times', '2 e2e-roof Under the roof'],
      '1 warmup Warm-up',
      '2 warmup-warm-up-study Warm-up',
      '1 runs Settings',
    ]);
    const report = await reportOfRecords([toyRecord(), warmup]);
    const html = renderHtml(report);
    for (const [, id] of html.matchAll(/href="#([^"]+)"/g)) expect(html).toContain(`id="${id}"`);
    expect(report.summary[0]).toMatch(/Closest to the roof.*\(\[Steps\]\(#e2e\)\)$/);
  });

  it('makes one part of records that answer one question, whatever their settings, and lists these at its end', async () => {
    const records = [toyRecord(), toyRecord({ size: 'xl' }, withSteps(9))];
    const { sections, environment } = await reportOfRecords(records);
    const [times] = sections[0]!.blocks.filter((block) => block.kind === 'table');
    expect(times!.rows.map(({ size }) => size)).toEqual(['small', 'xl']);
    expect(sections.filter(({ title }) => /steps \d|warmup/.test(title))).toEqual([]);
    const runs = sections.at(-1)!;
    expect(runs.folded).toBe(true);
    const [table] = runs.blocks.filter((block) => block.kind === 'table');
    expect(table!.rows.map(({ cells, settings }) => [cells, settings])).toEqual([
      [1, 'warmup 1, steps 4, seed 0, peer none'],
      [1, 'warmup 1, steps 9, seed 0, peer none'],
    ]);
    expect(environment.filter(({ label }) => label === 'Node.js')).toHaveLength(1);
    expect(environment.filter(({ label }) => label === 'Steps')).toEqual([]);
  });

  it('keeps apart what was measured twice, and loses neither', async () => {
    expect(await titles(toyRecord(), toyRecord({}, withSteps(9)))).toEqual([
      ...['1 e2e Steps', '2 e2e-times Times', '2 e2e-roof Under the roof'],
      ...['1 e2e-2 Steps, run 2', '2 e2e-2-times Times', '2 e2e-2-roof Under the roof'],
      '1 runs Settings',
    ]);
  });

  it('keeps a sweep whole of which only some cells were measured before in other settings', async () => {
    const again = [toyRecord({}, withSteps(9)), toyRecord({ size: 'xl' }, withSteps(9))];
    const { sections } = await reportOfRecords([toyRecord(), ...again]);
    const sizes = sections
      .flatMap(({ blocks }) => blocks)
      .flatMap((block) => (block.kind === 'table' && /^e2e.*-times$/.test(block.id) ? [block] : []))
      .map(({ rows }) => rows.map(({ size }) => size));
    // That of two sizes has a chart, and comes first.
    expect(sizes).toEqual([['small', 'xl'], ['small']]);
  });

  it('begins with the part that compares with a peer, whose claim is the title, and with its chart', async () => {
    const beside = (size: string) => toyRecord({ size }, { result: { ...toyResult(), peer } });
    const alone = ['small', 'xl'].map((size) => toyRecord({ size }, withSteps(9)));
    const report = await reportOfRecords([...alone, beside('small'), beside('xl')]);
    expect(report.title).toBe('A float32 training step takes 0.50× of the time of eager PyTorch');
    expect(report.chart).toMatchObject({ kind: 'ratios', id: 'e2e-2-at-a-glance', theirs: 'PyTorch' });
    const ids = report.sections
      .flatMap(({ blocks }) => blocks)
      .flatMap((block) => ('id' in block ? [block.id] : []));
    expect(ids).not.toContain('e2e-2-at-a-glance');
    expect(ids).toContain('e2e-at-a-glance');
    expect(report.summary.map((finding) => /\[([^\]]+)\]/.exec(finding)![1])).toEqual([
      'Steps vs PyTorch',
      'Steps',
    ]);
  });

  it('keeps devices apart, and names all of them', async () => {
    const device = { ...toyEnvironment.device, type: 'cuda' as const, name: 'Toy GPU' };
    const other = toyRecord({}, { environment: { ...toyEnvironment, device } });
    expect((await titles(toyRecord(), other)).filter((title) => title.startsWith('1'))).toEqual([
      ...['1 e2e Steps, Toy CPU', '1 e2e-2 Steps, Toy GPU'],
      '1 runs Settings',
    ]);
    expect((await reportOfRecords([toyRecord(), other])).subtitle).toContain('Toy CPU, Toy GPU');
  });

  it('counts the GPUs of ranks', async () => {
    const device = { ...toyEnvironment.device, type: 'cuda' as const, name: 'Toy GPU' };
    const environment = { ...toyEnvironment, device };
    const { subtitle } = await reportOfRecords([
      toyRecord({}, { environment, parameters: { ...toyCell, worldSize: 2 } }),
    ]);
    expect(subtitle).toContain('2 × Toy GPU');
  });
});
