import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const folder = fileURLToPath(new URL('..', import.meta.url));

/** What `program` prints in a copy of the package that has these parts alone; nothing on stderr. */
function runInCopy(parts: readonly string[], program: string): { copy: string; lines: string[] } {
  const copy = mkdtempSync(join(tmpdir(), 'roofline-without-gloo-'));
  try {
    for (const name of ['src', 'package.json', ...parts])
      cpSync(join(folder, name), join(copy, name), { recursive: true });
    symlinkSync(join(folder, 'node_modules'), join(copy, 'node_modules'));
    writeFileSync(join(copy, 'use.ts'), program);
    const { stdout, stderr } = spawnSync(
      process.execPath,
      ['--conditions=roofline-source', '--disable-warning=ExperimentalWarning', join(copy, 'use.ts')],
      { encoding: 'utf8' },
    );
    expect(stderr).toBe('');
    return { copy, lines: stdout.split('\n') };
  } finally {
    rmSync(copy, { recursive: true });
  }
}

it('without the shim all but initProcessGroup works, and that says how to get it', () => {
  const { copy, lines } = runInCopy(
    ['native/gloo_shim.cc', 'native/build.mjs'],
    `import { StoreServer, initProcessGroup, rankEnvironment } from './src/index.ts';
     const { port } = await StoreServer.listen({ token: 'x' });
     const options = { rank: 0, worldSize: 1, masterAddress: '127.0.0.1', masterPort: port };
     console.log(rankEnvironment(options).rank);
     await initProcessGroup({ backend: 'gloo', ...options }).catch(({ name, message }) => console.log(name, message));`,
  );
  const [rank, error] = lines;
  expect(rank).toBe('0');
  expect(error).toContain("LibraryNotFoundError gloo's shim was not found");
  expect(error).toContain('apt-get install libgloo-dev g++');
  expect(error).toContain(`node ${join(copy, 'native/build.mjs')}`);
});

const diagnosis = `import { diagnoseGloo } from './src/index.ts'; console.log(JSON.stringify(diagnoseGloo()));`;

it('is diagnosed without the shim and without its sources', () => {
  const diagnose = (...parts: string[]) => JSON.parse(runInCopy(parts, diagnosis).lines[0]!);
  expect(diagnose('native/gloo_shim.cc', 'native/build.mjs')).toMatchObject({
    status: 'missing',
    remedy: expect.stringContaining('native/build.mjs'),
  });
  expect(diagnose()).toEqual({
    component: 'libgloo',
    status: 'unusable',
    detail: 'gloo: the package @roofline/collectives has lost its folder native/. Install it anew.',
  });
});
