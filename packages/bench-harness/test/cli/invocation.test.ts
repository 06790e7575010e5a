import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { asCalled, invocation, lineAsCalled } from '../../src/cli/invocation.ts';
import { runCli } from '../fixtures/run-cli.ts';

/** With these files there, and no others. */
const called = (folder: string, currentFolder: string, ...files: string[]) =>
  invocation({ folder, currentFolder, exists: (path) => files.includes(path) });

describe('how the command is called', () => {
  const checkout = '/home/a/roofline/packages/bench-harness';
  const built = join(checkout, 'dist/cli.js');

  it('by npx where it is a dependency', () => {
    const folder = '/home/a/mine/node_modules/.pnpm/x/node_modules/@roofline/bench-harness';
    expect(called(folder, '/home/a/mine', join(folder, 'dist/cli.js'))).toBe('npx roofline');
  });

  it('by the script of a checkout in its folder, by its program elsewhere', () => {
    expect(called(checkout, '/home/a/roofline', built)).toBe('npm run -s roofline --');
    expect(called(checkout, '/home/a', built)).toBe('node ./roofline/packages/bench-harness/dist/cli.js');
    expect(called(checkout, '/home/a/roofline/docs', built)).toBe(
      'node ../packages/bench-harness/dist/cli.js',
    );
    expect(called(checkout, checkout)).toBe('node --conditions=roofline-source ./src/cli.ts');
  });

  it('by the launcher of a bundle', () => {
    const launcher = '/data/bundle/roofline';
    expect(called('/data/bundle/packages/bench-harness', '/data/bundle', launcher)).toBe('./roofline');
    expect(called('/data/bundle/packages/bench-harness', '/data/out', launcher)).toBe('../bundle/roofline');
  });
});

it('only commands are named as they are called', () => {
  // In a test nothing has said how.
  const text = 'Of `roofline report`, roofline plots and `roofline` alone.';
  expect([asCalled(text), lineAsCalled('roofline e2e && roofline report a')]).toEqual([
    text,
    'roofline e2e && roofline report a',
  ]);
});

it('a hint is a command that works where it is printed', async () => {
  const { exitCode, stderr } = await runCli(['e3e']);
  const [, hint] = /Try `(.*) --help`/.exec(stderr)!;
  expect({ exitCode, hint }).toEqual({ exitCode: 2, hint: expect.stringMatching(/^node |^npm run/) });
  const { stdout } = await runCli(['--help']);
  expect(stdout).toContain(`${hint} <command>`);
});
