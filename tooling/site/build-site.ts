// Builds the documentation as a site with search into site/: `npm run docs`; `-- --serve` shows it.
import { parseArgs } from 'node:util';
import { build, serve } from 'vitepress';
import { assemblePages } from './assemble-pages.ts';
import { pagesFolder, siteFolder } from './folders.ts';

const { values } = parseArgs({ options: { serve: { type: 'boolean', default: false } } });
await assemblePages(pagesFolder);
// Throws for a link that leads nowhere.
await build(import.meta.dirname);
console.log(values.serve ? '' : `${siteFolder}: \`npm run docs -- --serve\` shows it.`);
if (values.serve) await serve({ root: import.meta.dirname });
