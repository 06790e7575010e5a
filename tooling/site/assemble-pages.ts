// The pages of the site as VitePress takes them: docs/ with links that hold there, the API reference, and the reports.
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { renderHtml } from '../../packages/reports/src/index.ts';
import { committedReport, pageNames, reportPage } from '../../scripts/write-results.ts';
import { undocumented, writeApi } from '../api-reference/write-api.ts';

const root = resolve(import.meta.dirname, '../..');
const docs = join(root, 'docs');
/** Where a link leads that leaves docs/: to the sources. */
const repository = JSON.parse(readFileSync(join(root, 'packages/tensor-core/package.json'), 'utf8'))
  .repository.url.replace(/^git\+/, '')
  .replace(/\.git$/, '');

/**
 * Writes them into a folder, in place of what it holds. Throws for exports without a docstring, for docstrings whose
 * links lead nowhere, and for reports that are not those of their records.
 */
export async function assemblePages(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  for (const page of globSync('**/*.md', { cwd: docs })) {
    writePage(join(folder, page), sitePage(readFileSync(join(docs, page), 'utf8'), page));
  }
  for (const picture of globSync('**/*.svg', { cwd: docs }))
    cpSync(join(docs, picture), join(folder, picture));
  writePage(join(folder, 'index.md'), homePage());
  await addReports(folder);
  await addApi(folder);
}

async function addReports(folder: string): Promise<void> {
  for (const name of pageNames) {
    const report = await committedReport(name);
    if (readFileSync(join(docs, 'results', name, 'report.md'), 'utf8') !== reportPage(report)) {
      throw new Error(
        `docs/results/${name}/report.md is not that of its records: \`npm run results\` writes it.`,
      );
    }
    writePage(join(folder, 'public/results', name, 'charts.html'), renderHtml(report));
  }
}

async function addApi(folder: string): Promise<void> {
  const { project, warnings } = await writeApi(join(folder, 'api'));
  const faults = [...warnings, ...undocumented(project).map((name) => `${name} has no docstring`)];
  if (faults.length > 0) throw new Error(`The API reference has faults:\n${faults.join('\n')}`);
  for (const page of globSync('api/**/*.md', { cwd: folder })) {
    const path = join(folder, page);
    const text = readFileSync(path, 'utf8');
    rmSync(path);
    writePage(path, withIndex(text));
  }
}

/** A README is the index of its folder. */
function writePage(path: string, text: string): void {
  const target = path.replace(/README\.md$/, 'index.md');
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, text);
}

/** A page of docs/ with links that hold on the site: within docs/ to its pages, out of it and to records to the sources. */
function sitePage(text: string, page: string): string {
  const moved = (link: string) => siteLink(link, page);
  const linked = text
    .replace(/\]\(([^)\s]+)\)/g, (_, link: string) => `](${moved(link)})`)
    .replace(/\b(src|srcset)="([^"]+)"/g, (_, name: string, link: string) => `${name}="${moved(link)}"`);
  const indexed = withIndex(linked);
  if (/^results\/[^/]+\/report\.md$/.test(page)) return withoutSearch(withCharts(indexed));
  return /^results\/[^/]+\/study\.md$/.test(page) ? withoutSearch(indexed) : indexed;
}

function siteLink(link: string, page: string): string {
  if (/^(\w+:|#)/.test(link)) return link;
  const [path = '', anchor] = link.split('#');
  const target = relative(root, resolve(docs, dirname(page), path));
  const end = anchor === undefined ? '' : `#${anchor}`;
  const isShown = /^docs\/(.*\.(md|svg)|results)$/.test(target);
  if (!isShown) return `${repository}/blob/main/${target}${end}`;
  const folder = page.startsWith('..') ? '.' : dirname(page);
  return `./${relative(folder, target.slice('docs/'.length))}${target.endsWith('results') ? '/' : ''}${end}`;
}

function withIndex(text: string): string {
  return text.replace(/(\]\((?!\w+:)[^)\s]*)README\.md/g, '$1index.md');
}

function withCharts(report: string): string {
  const link = '[With charts and timelines, on one page](charts.html){target="_self"}';
  return report.replace(/^(# .*\n)/, `$1\n${link}\n`);
}

/** Searches leave results out: kernels' names would be most of what they find. */
function withoutSearch(page: string): string {
  return `---\nsearch: false\n---\n\n${page}`;
}

/** The README's first screen. */
function homePage(): string {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  const [lead, ...sections] = readme.split(/^(?=## )/m);
  return sitePage(`${lead}${sections[0]}`, '../README.md');
}
