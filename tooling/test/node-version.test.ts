import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const enginesOf = (path: string): string => JSON.parse(read(path)).engines.node;
const packages = readdirSync(join(root, 'packages')).map((name) => `packages/${name}/package.json`);

/** What one package claims, and so everything else has to. */
const lowest = enginesOf('packages/bench-harness/package.json').replace('>=', '');

it.each(['package.json', ...packages])('%s asks for the same Node.js as the others', (path) => {
  expect(enginesOf(path)).toBe(`>=${lowest}`);
});

it.each([
  ['README.md', `Node.js ${lowest} or newer`],
  ['packages/bench-harness/README.md', `Node.js ${lowest} or newer`],
  ['scripts/from-bare-clone.mjs', `Node ${lowest}, npm and git`],
  ['tooling/tsup.config.ts', `target: 'node${lowest}'`],
  ['.github/workflows/ci.yml', `node-version: '${lowest}'`],
  ['.github/workflows/release.yml', `node-version: '${lowest}'`],
])('%s names it', (path, statement) => {
  expect(read(path)).toContain(statement);
});

it('CI runs what is built on it', () => {
  expect(read('.github/workflows/ci.yml')).toContain('run: node packages/bench-harness/dist/cli.js demo');
});

it('tools are held against the Node.js that runs them', () => {
  const [, version] = /^nodeVersion: (\S+)$/m.exec(read('pnpm-workspace.yaml'))!;
  expect(version).toBe(JSON.parse(read('node_modules/node/package.json')).version);
});
