import { readFileSync } from 'node:fs';

/** The files of the page that run or apply in the browser. */
export type TemplateName = 'page.css' | 'theme.js' | 'navigation.js' | 'tables.js' | 'plots.js';

/**
 * The text of a file in `templates/`. This module stands one folder below the package's root, in `src/` as in
 * `dist/`, so that one relative path serves both.
 */
export function readTemplate(name: TemplateName): string {
  return readFileSync(new URL(`../templates/${name}`, import.meta.url), 'utf8');
}
