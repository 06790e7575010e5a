import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { run } from './run-command.ts';

const scratch = mkdtempSync(join(tmpdir(), 'roofline-tarballs-'));
afterAll(() => rmSync(scratch, { recursive: true }));

it('a project installs the packages of a clone as the README says, without a registry that has them', async () => {
  const readme = readFileSync('README.md', 'utf8');
  expect(readme).toContain('npm run pack');
  const [, install] = /^(npm install \S*\/tarballs\/\*\.tgz)/m.exec(readme)!;
  await run(process.execPath, ['scripts/pack-packages.mjs', join(scratch, 'tarballs')], resolve('.'));
  expect(globSync('roofline-*.tgz', { cwd: join(scratch, 'tarballs') })).toHaveLength(
    globSync('packages/*/package.json').length + 1,
  );

  const project = join(scratch, 'project');
  mkdirSync(project);
  await run('npm', ['init', '-y'], project);
  const command = install!.replace(/\S*\/tarballs\//, `${scratch}/tarballs/`);
  await run('sh', ['-c', `${command} --no-audit --no-fund --prefer-offline`], project);
  const script = `import { tensor, add } from '@roofline/tensor-core';
    console.log(add(tensor([1, 2]), 1).toFlatArray().join());`;
  expect(await run('node', ['--input-type=module', '--eval', script], project)).toBe('2,3\n');
  expect(await run('npx', ['roofline', '--help'], project)).toContain('npx roofline <command>');
}, 600_000);
