import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { asAuthored } from '../../../src/report/authored/authored-report.ts';
import { e2eBenchmark } from '../../../src/benchmarks/e2e/benchmark.ts';
import { toyRecord, toyResult } from '../../fixtures/records.ts';
import { temporaryFolder } from '../../fixtures/temporary-folder.ts';

const report = e2eBenchmark.toReport([
  toyRecord({ size: 'small' }),
  toyRecord({ size: '2.7b' }, { result: toyResult(4) }),
  toyRecord({ size: 'small', mode: 'forward' }, { result: toyResult(0.3) }),
]);

function authored(content: string) {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'report.yaml'), content);
  return asAuthored(report, ['/not/there', folder]);
}

describe('a report.yaml next to the records', () => {
  it('gives title, lead and findings, whose numbers the records fill', () => {
    const { title, chart, summary, sections } = authored(`
title: "2.7b takes {max medianMs of step-times where size = 2.7b}, at {min roofShare of step-times} of the roof or more"
lead: share-of-the-roof
findings:
  - "Small in float32: **{medianMs of step-times where size = small, mode = train-step}** ([all](#times-1))."
`);
    expect(title).toBe('2.7b takes 40.0 ms, at 12.5 % of the roof or more');
    expect(summary).toEqual(['Small in float32: **10.0 ms** ([all](#times-1)).']);
    expect(chart!.id).toBe('share-of-the-roof');
    const ids = sections.flatMap(({ blocks }) => blocks).flatMap((block) => ('id' in block ? block.id : []));
    expect(ids).not.toContain('share-of-the-roof');
    expect(ids).toContain('at-a-glance');
  });

  it('is not needed', () => expect(asAuthored(report, [temporaryFolder()])).toBe(report));

  it.each([
    ['A step takes 40 ms', 'the number 40 is written out'],
    ['Twice as fast, **0.62×**', 'the number 0.62× is written out'],
    ['{medianMs of steps}', 'there is no table steps; there are: step-times, '],
    ['{medianMS of step-times}', 'step-times has no column medianMS; it has: size, '],
    ['{medianMs of step-times}', '3 rows have one: say min, max or median, or where'],
    ['{max medianMs of step-times where colour = red}', 'rows of step-times have no colour'],
    ['{max medianMs of step-times where size = xl}', 'no row of step-times has a medianMs there'],
    ['{max size of step-times}', 'size is no number'],
    ['{fastest}', 'expected [min|max|median] COLUMN of TABLE'],
  ])('refuses %s', (title, message) => {
    expect(() => authored(`title: "${title}"`)).toThrow(message);
    expect(() => authored(`findings: ["${title}"]`)).toThrow('report.yaml');
  });

  it('refuses what it does not know', () => {
    expect(() => authored('headline: a')).toThrow(/report\.yaml.*it may hold title, lead and findings/);
    expect(() => authored('lead: nothing')).toThrow(
      'there is no drawing nothing to lead; there are: at-a-glance',
    );
    expect(() => authored('a: [')).toThrow('is no YAML');
  });
});
