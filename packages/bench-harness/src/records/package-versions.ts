import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { packageDirectory } from '../paths.ts';

const recordedPackages = [
  '@roofline/cuda',
  '@roofline/tensor-core',
  '@roofline/transformer',
  '@roofline/flash-attn',
  '@roofline/optim',
  '@roofline/reports',
];

/** The versions of this package and of ours that it measures with. */
export function packageVersions(): Record<string, string> {
  const require = createRequire(import.meta.url);
  const version = (path: string) => (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version;
  return {
    '@roofline/bench-harness': version(`${packageDirectory}/package.json`),
    ...Object.fromEntries(
      recordedPackages.map((name) => [name, version(require.resolve(`${name}/package.json`))]),
    ),
  };
}
