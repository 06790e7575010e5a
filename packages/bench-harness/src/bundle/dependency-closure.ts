import { existsSync, lstatSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';

/** A folder of one package, or a link to one, by its path within the workspace. */
export interface Closure {
  /** Folders of third-party packages. */
  readonly folders: ReadonlySet<string>;
  /** Links between packages, as pnpm laid them; path to target. */
  readonly links: ReadonlyMap<string, string>;
}

interface Manifest {
  readonly dependencies?: Record<string, string>;
  readonly optionalDependencies?: Record<string, string>;
  readonly peerDependencies?: Record<string, string>;
  readonly peerDependenciesMeta?: Record<string, { optional?: boolean }>;
}

/**
 * All that the given packages need at run time, found as Node would find it: each package's dependencies stand in
 * its own node_modules (workspace) or beside it (pnpm's store). Copying folders and links to the same paths
 * elsewhere gives the same resolution there. Throws for a dependency that is not installed.
 */
export function dependencyClosure(root: string, packages: readonly string[]): Closure {
  const folders = new Set<string>();
  const links = new Map<string, string>();
  const seen = new Set<string>();
  const visit = (folder: string): void => {
    if (seen.has(folder)) return;
    seen.add(folder);
    if (isInStore(root, folder)) folders.add(relative(root, folder));
    for (const { name, optional } of dependenciesOf(folder)) {
      const path = join(neighbours(root, folder), name);
      if (!existsSync(path)) {
        if (optional) continue;
        throw new Error(
          `${name}, which ${relative(root, folder)} needs, is not installed; run pnpm install.`,
        );
      }
      if (lstatSync(path).isSymbolicLink()) links.set(relative(root, path), readlinkSync(path));
      visit(realpathSync(path));
    }
  };
  packages.forEach(visit);
  return { folders, links };
}

function dependenciesOf(folder: string): { name: string; optional: boolean }[] {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
  const names = (group: Record<string, string> = {}) => Object.keys(group);
  const all = [
    ...names(manifest.dependencies).map((name) => ({ name, optional: false })),
    ...names(manifest.optionalDependencies).map((name) => ({ name, optional: true })),
    ...names(manifest.peerDependencies)
      .filter((name) => !manifest.peerDependenciesMeta?.[name]?.optional)
      .map((name) => ({ name, optional: false })),
  ];
  const optional = new Set(names(manifest.optionalDependencies));
  // Types are no use at run time.
  return all
    .filter(({ name }) => !name.startsWith('@types/'))
    .map(({ name, ...rest }) => ({ name, optional: rest.optional || optional.has(name) }));
}

function isInStore(root: string, folder: string): boolean {
  return relative(root, folder).split(sep).includes('.pnpm');
}

/** The node_modules in which a package's dependencies stand. */
function neighbours(root: string, folder: string): string {
  if (!isInStore(root, folder)) return join(folder, 'node_modules');
  let parent = dirname(folder);
  while (!parent.endsWith(`${sep}node_modules`)) parent = dirname(parent);
  return parent;
}
