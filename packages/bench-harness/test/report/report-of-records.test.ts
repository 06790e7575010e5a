import { renderHtml } from '@roofline/reports';
import { describe, expect, it } from 'vitest';
import { reportOfRecords } from '../../src/report/report-of-records.ts';
import { toyEnvironment } from '../fixtures/environment.ts';
import { toyCell, toyRecord } from '../fixtures/records.ts';

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
    expect(report.summary[0]).toMatch(/^\[e2e\]\(#e2e-times\): 1 of 1 cell measured/);
    const html = renderHtml(report);
    for (const [, id] of html.matchAll(/href="#([^"]+)"/g)) expect(html).toContain(`id="${id}"`);
  });

  it('tells what all share once, and what differs with its origin', async () => {
    const { environment } = await reportOfRecords([toyRecord(), { ...warmup, settings: { steps: 9 } }]);
    expect(environment.filter(({ label }) => label === 'Node.js')).toHaveLength(1);
    expect(environment).toContainEqual({ label: 'steps (warmup)', value: '9' });
    expect(environment).toContainEqual({ label: 'steps (e2e)', value: '4' });
  });

  it('sets devices apart by their names, and settings by number', async () => {
    const device = { ...toyEnvironment.device, type: 'cuda' as const, name: 'Toy GPU' };
    const labels = async (other: ReturnType<typeof toyRecord>) =>
      (await reportOfRecords([toyRecord(), other])).sections.map(({ id, title }) => `${id} ${title}`);
    expect(await labels(toyRecord({}, { environment: { ...toyEnvironment, device } }))).toEqual([
      'e2e-times e2e Toy CPU: Times',
      'e2e-plots e2e Toy CPU: Plots',
      'e2e-2-times e2e Toy GPU: Times',
      'e2e-2-plots e2e Toy GPU: Plots',
    ]);
    expect((await labels(toyRecord({}, { settings: { steps: 9 } })))[2]).toBe('e2e-2-times e2e 2: Times');
  });
});
