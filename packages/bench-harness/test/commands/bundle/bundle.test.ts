import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { dependencyClosure } from '../../../src/commands/bundle/dependency-closure.ts';
import { isNeeded } from '../../../src/commands/bundle/write-bundle.ts';
import { temporaryFolder } from '../../fixtures/temporary-folder.ts';

function makePackage(root: string, folder: string, manifest: object): void {
  mkdirSync(join(root, folder), { recursive: true });
  writeFileSync(join(root, folder, 'package.json'), JSON.stringify(manifest));
}

function makeLink(root: string, path: string, target: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  symlinkSync(target, join(root, path));
}

describe('dependencyClosure', () => {
  it('follows what is installed, through the store, and skips what is absent and optional', () => {
    const root = temporaryFolder();
    makePackage(root, 'packages/app', {
      dependencies: { a: '1', '@types/a': '1' },
      devDependencies: { '@types/b': '1', esbuild: '1' },
    });
    makePackage(root, 'node_modules/.pnpm/a@1/node_modules/a', {
      dependencies: { '@scope/b': '1' },
      optionalDependencies: { absent: '1' },
    });
    makePackage(root, 'node_modules/.pnpm/@scope+b@1/node_modules/@scope/b', {});
    makeLink(root, 'packages/app/node_modules/a', '../../../node_modules/.pnpm/a@1/node_modules/a');
    makeLink(
      root,
      'node_modules/.pnpm/a@1/node_modules/@scope/b',
      '../../../@scope+b@1/node_modules/@scope/b',
    );

    const { folders, links } = dependencyClosure(root, [join(root, 'packages/app')]);
    expect([...folders]).toEqual([
      'node_modules/.pnpm/a@1/node_modules/a',
      'node_modules/.pnpm/@scope+b@1/node_modules/@scope/b',
    ]);
    expect([...links.keys()]).toEqual([
      'packages/app/node_modules/a',
      'node_modules/.pnpm/a@1/node_modules/@scope/b',
    ]);
  });

  it('names a dependency that is not installed', () => {
    const root = temporaryFolder();
    makePackage(root, 'packages/app', { dependencies: { gone: '1' } });
    expect(() => dependencyClosure(root, [join(root, 'packages/app')])).toThrow(
      'gone, which packages/app needs, is not installed',
    );
  });
});

it.each([
  ['node_modules/a/index.js', true],
  ['node_modules/a/index.js.map', false],
  ['node_modules/a/index.d.mts', false],
  ['node_modules/a/README.md', false],
  ['node_modules/a/LICENSE.md', true],
  ['node_modules/onnxruntime-node/bin/napi-v6', true],
  ['node_modules/onnxruntime-node/bin/napi-v6/linux', true],
  ['node_modules/onnxruntime-node/bin/napi-v6/linux/x64/libonnxruntime.so.1', true],
  ['node_modules/onnxruntime-node/bin/napi-v6/linux/arm64', false],
  ['node_modules/onnxruntime-node/bin/napi-v6/darwin', false],
  ['node_modules/koffi/vendor', false],
  ['packages/collectives/native/gloo_shim.cc', true],
  ['packages/collectives/native/build.mjs', true],
  ['packages/collectives/native/build', false],
])('isNeeded(%j) is %j', (path, needed) => {
  expect(isNeeded(path)).toBe(needed);
});
