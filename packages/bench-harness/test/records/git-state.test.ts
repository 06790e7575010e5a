import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { gitState, isOfThisCode } from '../../src/records/git-state.ts';

const { packageDirectory } = vi.hoisted(() => ({ packageDirectory: { path: '' } }));
vi.mock('../../src/paths.ts', () => ({
  get packageDirectory() {
    return packageDirectory.path;
  },
}));

const root = mkdtempSync(join(tmpdir(), 'roofline-git-'));
afterAll(() => rmSync(root, { recursive: true }));

function git(...args: string[]): string {
  const identity = ['-c', 'user.name=a', '-c', 'user.email=a@b.c'];
  return execFileSync('git', [...identity, ...args], { cwd: root, encoding: 'utf8' }).trim();
}

/** Commits the files with this text; gives the commit. */
function commit(text: string, ...files: string[]): string {
  for (const file of files) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), text);
  }
  git('add', '-A');
  git('commit', '-qm', text);
  return git('rev-parse', 'HEAD');
}

const recordOf = (commit: string) => ({ commit, dirty: false });

describe('the code that a record is of', () => {
  git('init', '-q');
  const first = commit(
    '1',
    '.gitignore',
    'packages/a/package.json',
    'packages/a/src/a.ts',
    'packages/b/src/b.ts',
  );
  const other = commit('2', 'packages/b/src/b.ts');
  const kernels = commit('3', 'packages/b/kernels/deep/b.cu');
  const dependencies = commit('4', 'pnpm-lock.yaml');
  const tests = commit('5', 'packages/a/test/a.ts', 'docs/src/a.md', 'README.md');
  const head = commit('6', 'docs/results/records.jsonl');

  it('is this one where nothing that is measured differs since', () => {
    packageDirectory.path = join(root, 'packages/a');
    expect(gitState()).toEqual(recordOf(head));
    expect([head, tests, dependencies].map((each) => isOfThisCode(recordOf(each)))).toEqual([
      true,
      true,
      true,
    ]);
    expect([kernels, other, first].map((each) => isOfThisCode(recordOf(each)))).toEqual([
      false,
      false,
      false,
    ]);
  });

  it('is another one where the commit is not there, or none is known', () => {
    expect(isOfThisCode(recordOf('0123abc'))).toBe(false);
    expect(isOfThisCode(null)).toBe(false);
  });
});

describe('where the package is installed in the checkout of something else', () => {
  it('is that of the same commit alone', async () => {
    vi.resetModules();
    const again = await import('../../src/records/git-state.ts');
    writeFileSync(join(root, '.gitignore'), 'node_modules');
    packageDirectory.path = join(root, 'node_modules/a');
    mkdirSync(packageDirectory.path, { recursive: true });
    writeFileSync(join(packageDirectory.path, 'package.json'), '{}');
    const before = git('rev-parse', 'HEAD');
    const head = commit('7', 'docs/b.md');
    expect([head, before].map((each) => again.isOfThisCode(recordOf(each)))).toEqual([true, false]);
  });
});
