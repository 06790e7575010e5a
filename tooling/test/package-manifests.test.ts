import { globSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

interface PackageManifest {
  readonly name: string;
  readonly dependencies?: Record<string, string>;
  readonly optionalDependencies?: Record<string, string>;
  readonly peerDependencies?: Record<string, string>;
}

/** Names of packages after `from`, `import` and in `import()`; `node:fs` and the like are none. */
const statement =
  /^(?:import|export)\s[^'";]*?from\s*'([^'.:]+)'|^import\s*'([^'.:]+)'|\bimport\('([^'.:]+)'\)/gm;

/** The packages that the sources of one import, for types alone too. */
function importedBy(folder: string): readonly string[] {
  const texts = globSync(join(folder, 'src/**/*.ts')).map((path) => readFileSync(path, 'utf8'));
  const modules = texts
    .flatMap((text) => [...text.matchAll(statement)])
    .map((match) => (match[1] ?? match[2] ?? match[3])!);
  const names = modules.map((module) => /^(@[^/]+\/)?[^/]+/.exec(module)![0]);
  return [...new Set(names)].sort();
}

// In the checkout and in a flat node_modules, a package also finds what only others ask for.
describe.each(readdirSync('packages'))('packages/%s/package.json', (folder) => {
  const text = readFileSync(join('packages', folder, 'package.json'), 'utf8');
  const { name, dependencies, optionalDependencies, peerDependencies } = JSON.parse(text) as PackageManifest;

  it('asks for all that its sources import, and for nothing else', () => {
    const asked = Object.keys({ ...dependencies, ...peerDependencies }).filter(
      (asked) => !asked.startsWith('@types/'),
    );
    expect(importedBy(join('packages', folder)).filter((imported) => imported !== name)).toEqual(
      asked.sort(),
    );
  });

  // changesets would raise a `workspace:` range with each release, and npm then refuse the package beside older ones.
  it('says itself which versions of its peers it accepts', () => {
    for (const range of Object.values(peerDependencies ?? {})) {
      expect(range).toMatch(/^\^\d+\.\d+\.\d+( \|\| \^\d+\.\d+\.\d+)*$/);
    }
  });

  it('leaves to the platform alone what is optional', () => {
    for (const optional of Object.keys(optionalDependencies ?? {})) {
      expect(optional).toMatch(/^@roofline\/onnxruntime-/);
    }
  });
});
