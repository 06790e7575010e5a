import { renderHtml } from '@roofline/reports';
import { describe, expect, it } from 'vitest';
import { reportOfRecords } from '../../src/report/report-of-records.ts';
import { toyEnvironment } from '../fixtures/environment.ts';
import { toyCell, toyRecord, toyResult } from '../fixtures/records.ts';

const warmup = toyRecord({}, { benchmark: 'warmup', parameters: { ...toyCell, warmup: 0 } });

describe('reportOfRecords', () => {
  it('joins different benchmarks: ids, titles and links carry their names, and the page is whole', async () => {
    const report = await reportOfRecords([toyRecord(), warmup]);
    expect(report.sections.map(({ id, title }) => [id, title])).toEqual([
      ['e2e-times', 'e2e: Times'],
      ['e2e-plots', 'e2e: Plots'],
      ['warmup-warm-up-study', 'warmup: Warm-up'],
    ]);
    expect(report.title).toBe('Measurements: e2e, warmup');
    expect(report.summary[0]).toMatch(/^\[e2e\]\(#e2e-times\): Closest to the roof/);
    const html = renderHtml(report);
    for (const [, id] of html.matchAll(/href="#([^"]+)"/g)) expect(html).toContain(`id="${id}"`);
  });

  it('lets the parts give their findings in turns, and draws one chart above them', async () => {
    const both = (size: string, changes: object) => [
      toyRecord({ size }, changes),
      toyRecord({ size, mode: 'forward' }, { ...changes, result: toyResult(2) }),
    ];
    const longer = { settings: { ...toyRecord().settings, steps: 9 } };
    const { summary, chart, sections } = await reportOfRecords([...both('small', {}), ...both('xl', longer)]);
    expect(summary.map((sentence) => /^\[([^\]]+)/.exec(sentence)![1])).toEqual([
      ...['e2e (small)', 'e2e (xl)', 'e2e (small)', 'e2e (xl)'],
    ]);
    expect(chart!.id).toBe('e2e-at-a-glance');
    const ids = sections
      .flatMap(({ blocks }) => blocks)
      .flatMap((block) => ('id' in block ? [block.id] : []));
    expect(ids).not.toContain('e2e-at-a-glance');
    expect(ids).toContain('e2e-2-at-a-glance');
  });

  it('says once what all share, and what differs with its origin', async () => {
    const { environment } = await reportOfRecords([toyRecord(), { ...warmup, settings: { steps: 9 } }]);
    expect(environment.filter(({ label }) => label === 'Node.js')).toHaveLength(1);
    expect(environment).toContainEqual({ label: 'Steps (warmup)', value: '9' });
    expect(environment).toContainEqual({ label: 'Steps (e2e)', value: '4' });
  });

  it('names parts by what sets them apart: devices, sizes, studies, settings, variables', async () => {
    const device = { ...toyEnvironment.device, type: 'cuda' as const, name: 'Toy GPU' };
    const labels = async (other: ReturnType<typeof toyRecord>) =>
      (await reportOfRecords([toyRecord(), other])).sections.map(({ id, title }) => `${id} ${title}`);
    expect(await labels(toyRecord({}, { environment: { ...toyEnvironment, device } }))).toEqual([
      'e2e-times e2e (Toy CPU): Times',
      'e2e-plots e2e (Toy CPU): Plots',
      'e2e-2-times e2e (Toy GPU): Times',
      'e2e-2-plots e2e (Toy GPU): Plots',
    ]);
    const fewer = { ...toyEnvironment.device, properties: { threads: 1 } };
    expect((await labels(toyRecord({}, { environment: { ...toyEnvironment, device: fewer } })))[2]).toBe(
      'e2e-2-times e2e (Toy CPU, 1 threads): Times',
    );
    const third = async (other: ReturnType<typeof toyRecord>) => (await labels(other))[2];
    expect(await third(toyRecord({}, { settings: { steps: 9 } }))).toBe('e2e-2-times e2e (steps 9): Times');
    expect(await third(toyRecord({ size: 'xl' }, { settings: { steps: 9 } }))).toBe(
      'e2e-2-times e2e (xl): Times',
    );
    const { variables } = toyEnvironment;
    const environment = { ...toyEnvironment, variables: { ...variables, ROOFLINE_CPU_THREADS: '7' } };
    expect(await third(toyRecord({}, { environment }))).toBe(
      'e2e-2-times e2e (ROOFLINE_CPU_THREADS 7): Times',
    );
  });
});
