import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { undocumented, writeApi } from '../api-reference/write-api.ts';
import { Workshop } from '../handbook/workshop.ts';

const committed = resolve('docs/api');
const fresh = mkdtempSync(join(tmpdir(), 'roofline-api-'));
afterAll(() => rmSync(fresh, { recursive: true, force: true }));

const { project, warnings } = await writeApi(fresh);
const pages = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .sort();

/** The code after each `@example`. */
const examples = pages(fresh).flatMap((page) => {
  const text = readFileSync(join(fresh, page), 'utf8');
  return [...text.matchAll(/^#+ Example\n\n```ts\n([\s\S]*?)^```/gm)].map(([, code = '']) => code);
});
const workshop = new Workshop(resolve('tooling/test/.examples'));
afterAll(() => rmSync(workshop.folder, { recursive: true, force: true }));
workshop.setType('module');
examples.forEach((code, index) => workshop.write(`example-${index}.ts`, code));

it('has examples', () => expect(examples.length).toBeGreaterThanOrEqual(8));

it('the examples run', () => {
  workshop.write('all.ts', examples.map((_, index) => `import './example-${index}.ts';\n`).join(''));
  workshop.run('node all.ts');
});

it('the examples have types', () => {
  workshop.write('tsconfig.json', JSON.stringify({ extends: '../../tsconfig.base.json', include: ['*.ts'] }));
  workshop.run(`"${resolve('node_modules/.bin/tsc')}" -p tsconfig.json`);
});

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
