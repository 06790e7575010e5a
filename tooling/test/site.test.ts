import { globSync, readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { Workshop } from '../handbook/workshop.ts';
import { pagesFolder, siteFolder } from '../site/folders.ts';
import { run } from './run-command.ts';

// Refuses exports without a docstring, links that lead nowhere, and reports that are not those of their records.
await run(
  process.execPath,
  ['--conditions=roofline-source', '--disable-warning=ExperimentalWarning', 'tooling/site/build-site.ts'],
  resolve('.'),
);

/** The code after each `@example`. */
const examples = globSync('api/**/*.md', { cwd: pagesFolder }).flatMap((page) => {
  const text = readFileSync(join(pagesFolder, page), 'utf8');
  return [...text.matchAll(/^#+ Example\n\n```ts\n([\s\S]*?)^```/gm)].map(([, code = '']) => code);
});
const workshop = new Workshop(resolve('tooling/test/.examples'));
afterAll(() => rmSync(workshop.folder, { recursive: true, force: true }));
workshop.setType('module');
examples.forEach((code, index) => workshop.write(`example-${index}.ts`, code));

it('docstrings have examples', () => expect(examples.length).toBeGreaterThanOrEqual(8));

it('the examples run', () => {
  workshop.write('all.ts', examples.map((_, index) => `import './example-${index}.ts';\n`).join(''));
  workshop.run('node all.ts');
});

it('the examples have types', () => {
  workshop.write('tsconfig.json', JSON.stringify({ extends: '../../tsconfig.base.json', include: ['*.ts'] }));
  workshop.run(`"${resolve('node_modules/.bin/tsc')}" -p tsconfig.json`);
});

it('the topics of tensor-core have all of its exports, each once', async () => {
  const topics = globSync('api/tensor-core/*.md', { cwd: pagesFolder }).filter((page) =>
    readFileSync(join(pagesFolder, page), 'utf8').includes("from '@roofline/tensor-core';"),
  );
  const entries = topics.flatMap((page) =>
    [...readFileSync(join(pagesFolder, page), 'utf8').matchAll(/^### (?:abstract )?([\w$]+)/gm)].map(
      ([, name]) => name!,
    ),
  );
  const exported = Object.keys(await import('../../packages/tensor-core/src/index.ts'));
  expect(exported.filter((name) => !entries.includes(name))).toEqual([]);
  expect(entries.filter((name, i) => entries.indexOf(name) !== i)).toEqual([]);
});

it('every page of docs/ is one of the site', () => {
  const pages = globSync('**/*.md', { cwd: 'docs' }).map((page) => page.replace(/README\.md$/, 'index.md'));
  const missing = pages.filter(
    (page) => globSync(page.replace(/md$/, 'html'), { cwd: siteFolder }).length === 0,
  );
  expect(missing).toEqual([]);
});

it('each report has a page with its charts, which its tables lead to', () => {
  const reports = globSync('docs/results/*/report.md').map((path) => path.split('/').at(-2)!);
  expect(reports).not.toHaveLength(0);
  for (const name of reports) {
    const folder = join(siteFolder, 'results', name);
    expect(readFileSync(join(folder, 'charts.html'), 'utf8')).toContain('<svg');
    expect(readFileSync(join(folder, 'report.html'), 'utf8')).toMatch(/href="[^"]*charts\.html"/);
  }
});

it('links that leave docs/ lead to files of the repository', () => {
  const links = globSync('**/*.md', {
    cwd: pagesFolder,
    exclude: (path) => `${path}`.startsWith('api'),
  }).flatMap((page) => [
    ...readFileSync(join(pagesFolder, page), 'utf8').matchAll(/https:\/\/[^\s)]*\/blob\/main\/([^\s)#]*)/g),
  ]);
  expect(links).not.toHaveLength(0);
  expect(links.map(([, path]) => path!).filter((path) => globSync(path).length === 0)).toEqual([]);
});
