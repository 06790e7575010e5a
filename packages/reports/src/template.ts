import { readFileSync } from 'node:fs';

/** The files of the page that run or apply in the browser. */
export type TemplateName =
  | 'base.css'
  | 'navigation.css'
  | 'tables.css'
  | 'charts.css'
  | 'print.css'
  | 'theme.js'
  | 'navigation.js'
  | 'tables.js'
  | 'plots.js'
  | 'chart.js'
  | 'timeline.js'
  | 'allocations.js';

/**
 * The text of a file in `templates/`. This module is one folder below the package's root, in `src/` as in
 * `dist/`, so that one relative path serves both.
 */
export function readTemplate(name: TemplateName): string {
  return readFileSync(new URL(`../templates/${name}`, import.meta.url), 'utf8');
}

/**
 * Scripts that import from each other, as one: a page that may fetch nothing has no place to import from. Each
 * comes after those that it imports from.
 */
export function joinModules(names: readonly TemplateName[]): string {
  return names
    .map((name) =>
      readTemplate(name)
        .replace(/^import .*$\n*/gm, '')
        .replace(/^export /gm, ''),
    )
    .join('');
}
