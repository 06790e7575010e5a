import { execFileSync } from 'node:child_process';
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const manifests = globSync('{packages,libraries}/*/package.json');

interface Manifest {
  readonly name: string;
  version: string;
  readonly peerDependencies?: Record<string, string>;
}

let scratch: string;

const read = (path: string): Manifest => JSON.parse(readFileSync(join(scratch, path), 'utf8'));
const versions = () =>
  Object.fromEntries(
    manifests.map((path) => {
      const { name, version } = read(path);
      return [name, version];
    }),
  );

/** Versions behind a release with one changeset, in a copy of the manifests in which every package has 0.1.0. */
function released(bump: 'minor' | 'patch', name: string): Record<string, string> {
  for (const path of manifests) {
    cpSync(path, join(scratch, path));
    const manifest = read(path);
    if (path.startsWith('packages')) manifest.version = '0.1.0';
    writeFileSync(join(scratch, path), JSON.stringify(manifest));
  }
  writeFileSync(join(scratch, '.changeset/one.md'), `---\n'${name}': ${bump}\n---\n\nA change.\n`);
  execFileSync(resolve('node_modules/.bin/changeset'), ['version'], { cwd: scratch, stdio: 'pipe' });
  return versions();
}

beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), 'roofline-versions-'));
  for (const path of ['package.json', 'pnpm-workspace.yaml', '.changeset/config.json']) {
    cpSync(path, join(scratch, path));
  }
  execFileSync('git', ['init', '--quiet'], { cwd: scratch });
});

afterAll(() => rmSync(scratch, { recursive: true }));

// A package asks for the tensor-core of its own release as a peer. If an optim 0.1.1 asked for tensor-core 0.2.0, npm
// would refuse to install `^0.1.0` of both.
describe('the versions of a release', () => {
  it('rise together where what depends on a package can no longer stay with the last one', () => {
    const after = released('minor', '@roofline/tensor-core');
    const asPeer = manifests
      .map(read)
      .filter(({ peerDependencies = {} }) => '@roofline/tensor-core' in peerDependencies);
    expect(asPeer.length).toBeGreaterThan(0);
    for (const { name } of asPeer) expect({ name, version: after[name] }).toEqual({ name, version: '0.2.0' });
  });

  it('are alike in all packages, but for the libraries, which have that of ONNX Runtime', () => {
    const before = Object.entries(versions()).filter(([name]) => name.includes('/onnxruntime-'));
    const after = Object.entries(released('patch', '@roofline/optim'));
    const [libraries, packages] = [true, false].map((isLibrary) =>
      after.filter(([name]) => name.includes('/onnxruntime-') === isLibrary),
    );
    expect(new Set(packages!.map(([, version]) => version))).toEqual(new Set(['0.1.1']));
    expect(libraries).toEqual(before);
  });
});
