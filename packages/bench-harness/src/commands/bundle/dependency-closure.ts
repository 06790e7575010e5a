import { existsSync, lstatSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';

/** A folder of one package, or a link to one, by its path within the workspace. */
export interface Closure {
  /** Folders of third-party packages. */
  readonly folders: ReadonlySet<string>;
  /** Links between packages, as pnpm laid them; path to target. */
  readonly links: ReadonlyMap<string, string>;
}

/**
 * Of no use to the command or a GPU test: types, a peer that the test runner does without, what checks reports; and
 * our packages of ONNX Runtime's library, which are empty in a checkout: the bundle has that of onnxruntime-node.
 */
function isDeadWeight(name: string): boolean {
  const isUnneeded = ['@types/', '@roofline/onnxruntime-'].some((prefix) => name.startsWith(prefix));
  return isUnneeded || ['esbuild', typstCompiler].includes(name);
}

const typstCompiler = '@myriaddreamin/typst-ts-node-compiler';

interface Manifest {
  readonly dependencies?: Record<string, string>;
  readonly devDependencies?: Record<string, string>;
  readonly optionalDependencies?: Record<string, string>;
  readonly peerDependencies?: Record<string, string>;
  readonly peerDependenciesMeta?: Record<string, { optional?: boolean }>;
}

/**
 * All that the given packages need at run time, found as Node would find it: each package's dependencies are in
 * its own node_modules (workspace) or next to it (pnpm's store). Copying folders and links to the same paths
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
    for (const { name, optional } of dependenciesOf(root, folder)) {
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

/** A package of the workspace comes with what its tests need; what is optional is taken where it is installed. */
function dependenciesOf(root: string, folder: string): { name: string; optional: boolean }[] {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
  const { optionalDependencies = {}, peerDependenciesMeta = {} } = manifest;
  const names = Object.keys({
    ...manifest.dependencies,
    ...optionalDependencies,
    ...manifest.peerDependencies,
    ...(isInStore(root, folder) ? {} : manifest.devDependencies),
  });
  return names
    .filter((name) => !isDeadWeight(name))
    .map((name) => ({
      name,
      optional: name in optionalDependencies || (peerDependenciesMeta[name]?.optional ?? false),
    }));
}

function isInStore(root: string, folder: string): boolean {
  return relative(root, folder).split(sep).includes('.pnpm');
}

/** The node_modules in which a package's dependencies are. */
function neighbours(root: string, folder: string): string {
  if (!isInStore(root, folder)) return join(folder, 'node_modules');
  let parent = dirname(folder);
  while (!parent.endsWith(`${sep}node_modules`)) parent = dirname(parent);
  return parent;
}
