import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { UsageError } from '../../errors.ts';
import { packageDirectory } from '../../paths.ts';
import { stampBundle } from '../../records/git-state.ts';
import { dependencyClosure } from './dependency-closure.ts';
import { launchers, readme } from './launchers.ts';

/** What is copied of our own packages, where present. */
const PACKAGE_PARTS = [
  'package.json',
  'dist',
  'src',
  'kernels',
  'emulator',
  'native',
  'machines',
  'python',
  'templates',
  'test',
  'examples',
];
const WORKSPACE_PARTS = ['package.json', 'LICENSE', 'tooling'];

/** Writes the bundle into the empty or absent folder `out`. Throws UsageError outside of a built checkout. */
export function writeBundle(out: string): void {
  const root = workspaceRoot();
  const packages = builtPackages(root);
  if (existsSync(out) && readdirSync(out).length > 0) {
    throw new UsageError(`${out} is not empty. Remove it, or name another folder.`);
  }
  for (const part of WORKSPACE_PARTS) copyPart(root, out, part);
  for (const folder of packages) {
    for (const part of PACKAGE_PARTS) copyPart(root, out, join(relative(root, folder), part));
  }
  const testRunner = join(root, 'node_modules', 'vitest');
  const { folders, links } = dependencyClosure(root, [...packages, realpathSync(testRunner)]);
  for (const folder of folders)
    cpSync(join(root, folder), join(out, folder), { recursive: true, filter: isNeeded });
  for (const [path, target] of links) link(join(out, path), target);
  link(join(out, 'node_modules', 'vitest'), relative(join(root, 'node_modules'), realpathSync(testRunner)));
  // A script of the host's own, anywhere in the bundle, imports our packages by their names.
  for (const folder of packages)
    link(join(out, 'node_modules', nameOf(folder)), join('..', '..', relative(root, folder)));
  copyNode(root, out);
  for (const [name, script] of Object.entries(launchers)) {
    writeFileSync(join(out, name), script);
    chmodSync(join(out, name), 0o755);
  }
  stampBundle(out);
  writeFileSync(join(out, 'README.md'), readme);
}

function workspaceRoot(): string {
  const { platform, arch } = BUNDLE_PLATFORM;
  if (process.platform !== platform || process.arch !== arch) {
    throw new UsageError(
      `A bundle is made on ${platform} ${arch}, because it takes this machine's binaries.`,
    );
  }
  const root = join(packageDirectory, '..', '..');
  if (existsSync(join(root, 'pnpm-workspace.yaml'))) return realpathSync(root);
  throw new UsageError(
    '`roofline bundle` works in a checkout of the repository, not in an installed package.',
  );
}

function builtPackages(root: string): string[] {
  const folders = readdirSync(join(root, 'packages'))
    .map((name) => join(root, 'packages', name))
    .filter((folder) => existsSync(join(folder, 'package.json')));
  const unbuilt = folders.filter((folder) => !existsSync(join(folder, 'dist')));
  if (unbuilt.length === 0) return folders;
  const names = unbuilt.map((folder) => relative(root, folder)).join(', ');
  throw new UsageError(`Not built yet: ${names}. Run \`npx turbo run build\` first.`);
}

/** With the source maps of our packages: allocations are reported with the lines of the sources. */
function copyPart(root: string, out: string, part: string): void {
  if (existsSync(join(root, part))) {
    const filter = (path: string) => isNeeded(path) || path.endsWith('.js.map');
    cpSync(join(root, part), join(out, part), { recursive: true, filter });
  }
}

function nameOf(folder: string): string {
  return (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { name: string }).name;
}

function link(path: string, target: string): void {
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(target, path);
}

function copyNode(root: string, out: string): void {
  const binary = join(root, 'node_modules', 'node', 'bin', 'node');
  if (!existsSync(binary))
    throw new UsageError('The `node` package is not installed; run pnpm install first.');
  mkdirSync(join(out, 'bin'), { recursive: true });
  cpSync(binary, join(out, 'bin', 'node'), { dereference: true });
  chmodSync(join(out, 'bin', 'node'), 0o755);
}

/** The one platform that a bundle is for. */
const BUNDLE_PLATFORM = { platform: 'linux', arch: 'x64' } as const;

/** Endings of files that no program reads at run time. */
const DEAD_WEIGHT = /\.(map|d\.[cm]?ts|md|markdown|flow|tsbuildinfo)$/i;

/** Folders of certain packages that serve other platforms, or building from source; and what was built for this host's Gloo. */
const FOREIGN_FOLDERS: readonly RegExp[] = [
  /node_modules\/onnxruntime-node\/bin\/napi-v\d+\/(?!linux(\/x64|$))/,
  /node_modules\/onnxruntime-node\/bin\/napi-v\d+\/linux\/(?!x64)/,
  /node_modules\/koffi\/(doc|vendor)$/,
  /collectives\/native\/build$/,
];

/** Whether a file or folder belongs in the bundle. Licences always do. */
export function isNeeded(path: string): boolean {
  const unified = path.replaceAll(sep, '/');
  if (/\/licen[cs]e[^/]*$/i.test(unified)) return true;
  return !DEAD_WEIGHT.test(unified) && !FOREIGN_FOLDERS.some((pattern) => pattern.test(unified));
}
