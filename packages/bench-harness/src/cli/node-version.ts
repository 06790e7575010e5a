import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageDirectory } from '../paths.ts';

/**
 * What to say where `version` of Node.js (`v20.1.0`) is older than this package's `engines` ask for; null where it is
 * not. Older ones stop in the middle, at what they lack.
 */
export function nodeProblem(version: string): string | null {
  const manifest = readFileSync(join(packageDirectory, 'package.json'), 'utf8');
  const { engines } = JSON.parse(manifest) as { engines: { node: string } };
  const lowest = engines.node.replace('>=', '');
  if (version.slice(1).localeCompare(lowest, 'en', { numeric: true }) >= 0) return null;
  return (
    `Node.js ${lowest} or newer is needed; this is ${version}. Install it from https://nodejs.org, or put it in ` +
    'front for one command: `npx -y -p node@lts -- roofline ...`.'
  );
}
