import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const pnpm = join(root, 'node_modules/.bin/pnpm');
const folders = readdirSync(join(root, 'packages')).map((name) => join(root, 'packages', name));
const manifests = folders.map((folder) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')));

/** What a command prints. Throws an error that holds all its output. */
function run(command: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd,
    encoding: 'utf8',
    timeout: 240_000,
  });
  if (status !== 0)
    throw new Error(`${command} ${args.join(' ')} failed:\n${stdout}\n${stderr}`, { cause: error });
  return stdout;
}

describe('the packages as npm would serve them', () => {
  let project: string;

  beforeAll(() => {
    project = mkdtempSync(join(tmpdir(), 'roofline-install-'));
    for (const folder of folders) run(pnpm, ['pack', '--pack-destination', project], folder);
    writeFileSync(
      join(project, 'package.json'),
      JSON.stringify({ name: 'empty', private: true, type: 'module' }),
    );
    const tarballs = readdirSync(project).filter((file) => file.endsWith('.tgz'));
    expect(tarballs).toHaveLength(folders.length);
    run(
      'npm',
      [
        'install',
        '--no-audit',
        '--no-fund',
        '--ignore-scripts',
        '--prefer-offline',
        ...tarballs.map((file) => `./${file}`),
      ],
      project,
    );
  }, 300_000);

  afterAll(() => rmSync(project, { recursive: true, force: true }));

  it.each(manifests.map(({ name }) => name))('%s imports in an empty project', (name) => {
    const script = `import(${JSON.stringify(name)}).then((module) => console.log(Object.keys(module).length))`;
    expect(Number(run('node', ['--input-type=module', '--eval', script], project))).toBeGreaterThan(0);
  });

  it('has types that a strict project can use', () => {
    writeFileSync(
      join(project, 'use.ts'),
      `${manifests.map(({ name }, i) => `import * as package${i} from '${name}';`).join('\n')}
       import { tensor } from '@roofline/tensor-core';
       export const values: number[] = tensor([1, 2]).toFlatArray();
       export const all = [${manifests.map((_, i) => `package${i}`).join()}];`,
    );
    const compilerOptions = {
      strict: true,
      module: 'nodenext',
      target: 'es2023',
      noEmit: true,
      types: [],
      lib: ['es2023', 'esnext.disposable', 'dom'],
    };
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['use.ts'] }));
    run(join(root, 'node_modules/.bin/tsc'), ['-p', 'tsconfig.json'], project);
  });

  it('has a roofline command that works there', () => {
    expect(run(join(project, 'node_modules/.bin/roofline'), ['--help'], project)).toContain('roofline e2e');
  });
});

describe('releases', () => {
  it.each(folders)(
    '%s passes a dry-run publish',
    (folder) => {
      run(pnpm, ['publish', '--dry-run', '--no-git-checks'], folder);
    },
    120_000,
  );

  it('every package is covered by a readable changeset or a released version', () => {
    expect(run('npx', ['changeset', 'status'], root)).not.toContain('error');
  });
});
