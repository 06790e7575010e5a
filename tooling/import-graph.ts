import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const statement =
  /^(?:import|export)\s+(?:type\s+)?[^'";]*?\s*from\s*'(\.[^']+)'|^import\s*'(\.[^']+)'|\bimport\('(\.[^']+)'\)/gm;

/** The modules of `folder` by their paths in it, each with those of them that it imports, for types alone too. */
export function importGraph(folder: string): ReadonlyMap<string, readonly string[]> {
  const modules = globSync('**/*.ts', { cwd: folder });
  return new Map(
    modules.map((path) => {
      const imports = [...readFileSync(join(folder, path), 'utf8').matchAll(statement)];
      return [
        path,
        imports.map((match) => normalize(join(dirname(path), (match[1] ?? match[2] ?? match[3])!))),
      ];
    }),
  );
}
