import { renderMarkdown } from '@roofline/reports';
import { expect, it } from 'vitest';
import { e2eBenchmark } from '../../src/benchmarks/e2e/benchmark.ts';
import { toyEnvironment } from '../fixtures/environment.ts';
import { toyRecord } from '../fixtures/records.ts';
import { tinyBenchmark } from '../fixtures/tiny-benchmark.ts';

const environment = (changes: Partial<typeof toyEnvironment>) => ({
  environment: { ...toyEnvironment, ...changes },
});
const ofCommit = (commit: string, dirty = false) =>
  environment({ git: { commit: commit.repeat(40), dirty } });
const ofVersion = (version: string) => environment({ packages: { '@roofline/bench-harness': version } });
const warning = 'Not all cells were measured by the same state of the code: ';

it('the report of any benchmark warns of cells of several commits, or of versions outside of a checkout', () => {
  const e2e = [ofCommit('a'), ofCommit('b'), ofCommit('b', true)].map((changes, index) =>
    toyRecord({ context: 8 + index }, changes),
  );
  expect(renderMarkdown(e2eBenchmark.toReport(e2e))).toContain(
    `> ${warning}aaaaaaaa, bbbbbbbb, bbbbbbbb with changes.\n`,
  );
  const tiny = (changes: Partial<ReturnType<typeof toyRecord>>, size: number) => ({
    ...toyRecord({}, changes),
    ...{ benchmark: 'tiny', parameters: { size }, result: { timesMs: [1, 2], sums: [1, 2] } },
  });
  const upgraded = [tiny(ofVersion('1.0.0'), 1), tiny(ofVersion('1.1.0'), 2)];
  expect(renderMarkdown(tinyBenchmark.toReport(upgraded))).toContain(
    `> ${warning}version 1.0.0, version 1.1.0.\n`,
  );
  expect(renderMarkdown(tinyBenchmark.toReport(upgraded.slice(1)))).not.toContain(warning);
});
