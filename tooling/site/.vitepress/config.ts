import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { defineConfig, type DefaultTheme } from 'vitepress';
import { apiPages } from '../../api-reference/write-api.ts';
import { pagesFolder, siteFolder } from '../folders.ts';

const docs = resolve(import.meta.dirname, '../../../docs');

/** The pages of the handbook in the order of its own list. */
function handbook(): DefaultTheme.SidebarItem[] {
  const page = readFileSync(join(docs, 'handbook/README.md'), 'utf8');
  const titles = [...page.matchAll(/^\d+\. \[([^\]]+)\]\(([^)]+)\.md\)/gm)];
  return titles.map(([, text = '', name = '']) => ({ text, link: `/handbook/${name}` }));
}

/** The pages of the reference by package. */
function api(): DefaultTheme.SidebarItem[] {
  const packages = Map.groupBy(apiPages(), ({ path }) => path.split('/')[0]!);
  return [...packages].map(([text, pages]) => ({
    text,
    collapsed: text !== 'tensor-core',
    items: pages.map(({ title, path }) => ({
      text: title.replace('@roofline/', ''),
      link: `/api/${path}`,
    })),
  }));
}

export default defineConfig({
  title: 'Roofline',
  description: 'Train, benchmark and profile Transformer language models on NVIDIA GPUs from TypeScript.',
  srcDir: pagesFolder,
  outDir: siteFolder,
  cacheDir: join(pagesFolder, '../.cache'),
  vite: { build: { chunkSizeWarningLimit: 4096 } },
  markdown: { languageAlias: { cuda: 'cpp' } },
  themeConfig: {
    search: { provider: 'local' },
    nav: [
      { text: 'Handbook', link: '/handbook/' },
      { text: 'CS336', link: '/cs336' },
      { text: 'A whole study', link: '/study' },
      { text: 'Benchmarks', link: '/benchmarks' },
      { text: 'Records', link: '/results/' },
      { text: 'API', link: '/api/' },
    ],
    sidebar: {
      '/handbook/': handbook(),
      '/api/': api(),
    },
    outline: [2, 3],
  },
});
