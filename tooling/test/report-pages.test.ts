import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readResults } from '../../packages/bench-harness/src/index.ts';
import { renderHtml } from '../../packages/reports/src/index.ts';
import { openBrowser } from '../../packages/reports/test/html/browser.ts';
import { plans } from '../../scripts/plans.ts';
import { committedReport, reportOf, reports } from '../../scripts/write-results.ts';

const browser = openBrowser();
const audit = readFileSync(resolve(import.meta.dirname, '../pages/audit.js'), 'utf8');

/** Patterns of what no heading may hold: a setting's name as the code has it, or one with a value. */
function settingNames(folders: readonly string[]): string[] {
  const records = folders.flatMap((folder) => readResults(join('docs/results', folder)));
  const names = [...new Set(records.flatMap(({ settings }) => Object.keys(settings)))];
  return names.map((name) => (/[A-Z]/.test(name) ? `\\b${name}\\b` : `\\b${name} (\\d|none|torch)`));
}

/** Pages whose question is only a part of those above. */
const alone = ['h200-memory', 'h200-overhead', 'h200-compile', 'h200-precision', 'h200-warmup', 'cpu-ddp'];
const pages = [
  ...Object.entries(reports).map(([name, folders]) => ({ name, folders, read: () => committedReport(name) })),
  ...Object.keys(plans).map((name) => ({ name, folders: [], read: () => committedReport(name) })),
  ...alone.map((name) => ({ name, folders: [name], read: () => reportOf([name]) })),
];

describe.skipIf(!browser)('pages of the committed records (skipped where there is no Chromium)', () => {
  afterAll(() => browser?.close());

  let faults: Readonly<Record<string, readonly string[]>>;

  // All in one browser: its start takes longer than a page.
  beforeAll(async () => {
    const asked = await Promise.all(
      pages.map(async ({ name, folders, read }) => [name, renderHtml(await read()), settingNames(folders)]),
    );
    const answer = await browser!.askPage(
      '<!doctype html><html><head><meta charset="utf-8"></head><body></body></html>',
      `${audit}
       const faults = {};
       for (const [name, html, names] of ${JSON.stringify(asked).replaceAll('<', '\\u003c')})
         faults[name] = await auditPages(html, [1280, 390], names);
       return faults;`,
    );
    faults = answer as typeof faults;
  });

  it.each(pages)(
    '$name: no text covers another or leaves its chart, none is turned, nothing scrolls sideways, all can be read',
    ({ name }) => expect(faults[name]).toEqual([]),
  );
});
