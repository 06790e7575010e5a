import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { undocumented, writeApi } from '../api-reference/write-api.ts';

const committed = resolve('docs/api');
const fresh = mkdtempSync(join(tmpdir(), 'roofline-api-'));
afterAll(() => rmSync(fresh, { recursive: true, force: true }));

const { project, warnings } = await writeApi(fresh);
const pages = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .sort();

it('every export has a docstring', () => {
  expect(undocumented(project)).toEqual([]);
});

it('links of docstrings lead somewhere', () => {
  expect(warnings).toEqual([]);
});

it('the pages under docs/api are those of the sources: `npm run api` writes them', () => {
  expect(pages(committed)).toEqual(pages(fresh));
  const stale = pages(fresh).filter(
    (page) => readFileSync(join(committed, page), 'utf8') !== readFileSync(join(fresh, page), 'utf8'),
  );
  expect(stale).toEqual([]);
});
