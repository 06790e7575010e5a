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

function ofCheckout(): GitState | null {
  const git = (...args: string[]) =>
    execFileSync('git', args, {
      cwd: packageDirectory,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
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
