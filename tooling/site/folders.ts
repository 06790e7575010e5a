import { resolve } from 'node:path';

const root = resolve(import.meta.dirname, '../..');

/** The pages that VitePress reads, written anew for each build. */
export const pagesFolder = resolve(import.meta.dirname, '.pages');

/** The finished site. */
export const siteFolder = resolve(root, 'site');
