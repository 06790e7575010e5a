import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ifPossible } from '../attempt.ts';
import { z } from 'zod';
import { packageDirectory } from '../paths.ts';

/** The commit of the code that is measured, and whether files differed from it. */
export const gitStateSchema = z.object({ commit: z.string(), dirty: z.boolean() });
export type GitState = z.infer<typeof gitStateSchema>;

/** Where a bundle, which is no checkout, says what it was made from. */
const stampName = 'commit.json';

/**
 * The state of the checkout that this package's bundle was made from, else of the one it lies in, else null. In this
 * order: a bundle may be unpacked within the checkout of something else.
 */
export function gitState(): GitState | null {
  return ofBundle(join(packageDirectory, '..', '..')) ?? ofCheckout();
}

/** Writes into the bundle `folder` what it is made from. */
export function stampBundle(folder: string): void {
  writeFileSync(join(folder, stampName), `${JSON.stringify(gitState())}\n`);
}

/** Tests, documents and records are none of it. */
const measuredFiles = ['src', 'kernels', 'python'].map((folder) => `:(top,glob)packages/*/${folder}/**`);
const dependencies = ':(top)pnpm-lock.yaml';

/** By commit; null for none. */
const sameCode = new Map<string | null, boolean>();

/**
 * Whether a record is of the code that is here: of its commit or, where that of this package is in the checkout, of one that differs in
 * nothing that is measured.
 */
export function isOfThisCode(state: GitState | null): boolean {
  const commit = state?.commit ?? null;
  let isSame = sameCode.get(commit);
  if (isSame === undefined) {
    isSame = commit === (gitState()?.commit ?? null) || (commit !== null && differsInNothing(commit));
    sameCode.set(commit, isSame);
  }
  return isSame;
}

/** A commit that is not in the checkout differs, and so does any where this package is in none. */
function differsInNothing(commit: string): boolean {
  return (
    ifPossible(() => {
      git('ls-files', '--error-unmatch', 'package.json');
      git('diff', '--quiet', commit, 'HEAD', '--', ...measuredFiles, dependencies);
      return true;
    }) ?? false
  );
}

function git(...args: string[]): string {
  return execFileSync('git', args, {
    cwd: packageDirectory,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
}

function ofCheckout(): GitState | null {
  const stateOf = () => ({
    commit: git('rev-parse', 'HEAD').trim(),
    dirty: git('status', '--porcelain').trim() !== '',
  });
  return ifPossible(stateOf) ?? null;
}

function ofBundle(root: string): GitState | null {
  return (
    ifPossible(() =>
      gitStateSchema.nullable().parse(JSON.parse(readFileSync(join(root, stampName), 'utf8'))),
    ) ?? null
  );
}
