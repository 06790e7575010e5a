import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Report } from '@roofline/reports';
import { expect, it } from 'vitest';
import { UsageError } from '../../src/errors.ts';
import { reportOfRecords } from '../../src/report/report-of-records.ts';
import { writeReport } from '../../src/report/write-report.ts';
import { toyRecord } from '../fixtures/records.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

it('writes the tables of timelines and allocations next to the page', async () => {
  const report: Report = {
    title: 'Both',
    createdAt: '2026-01-02T03:04:05.000Z',
    summary: [],
    environment: [],
    sections: [
      {
        id: 's',
        title: 'S',
        blocks: [
          {
            kind: 'timeline',
            id: 'step',
            title: 'Step',
            tracks: [{ name: 'Stream 7', slices: [{ name: 'gemm', startUs: 0, durationUs: 3000 }] }],
          },
          {
            kind: 'allocations',
            id: 'memory',
            title: 'Memory',
            allocations: [{ label: 'weights', bytes: 2048, startUs: 0, endUs: null }],
          },
        ],
      },
    ],
  };
  const folder = temporaryFolder();
  const { html, files } = await writeReport(report, folder);
  expect(readFileSync(html, 'utf8')).toContain('id="memory"');
  expect(readFileSync(join(folder, 'tables/step-data.csv'), 'utf8')).toContain('Stream 7,gemm,1,3,3,3');
  expect(readFileSync(join(folder, 'tables/memory-data.typ'), 'utf8')).toContain('"weights"');
  expect(files.every(existsSync)).toBe(true);
});

it.each(['tables', 'plots', 'report.html'])('says in words that %s cannot be written', async (name) => {
  const folder = temporaryFolder();
  const report = await reportOfRecords([toyRecord()]);
  if (name === 'report.html') mkdirSync(join(folder, name));
  else writeFileSync(join(folder, name), '');
  await expect(writeReport(report, folder)).rejects.toThrow(UsageError);
  await expect(writeReport(report, folder)).rejects.toThrow(/Cannot write .*remove what is there/);
});
