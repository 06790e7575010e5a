import { sep } from 'node:path';

/** The one platform that a bundle is for. */
export const BUNDLE_PLATFORM = { platform: 'linux', arch: 'x64' } as const;

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
