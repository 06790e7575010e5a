import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const folder = fileURLToPath(new URL('..', import.meta.url));

it('without the shim all but initProcessGroup works, and that says how to get it', () => {
  // A copy of the package as it is before the shim is built.
  const copy = mkdtempSync(join(tmpdir(), 'roofline-without-gloo-'));
  try {
    for (const name of ['src', 'package.json', 'native/gloo_shim.cc', 'native/build.mjs'])
      cpSync(join(folder, name), join(copy, name), { recursive: true });
    symlinkSync(join(folder, 'node_modules'), join(copy, 'node_modules'));
    writeFileSync(
      join(copy, 'use.ts'),
      `import { StoreServer, initProcessGroup, rankEnvironment } from './src/index.ts';
       const { port } = await StoreServer.listen({ token: 'x' });
       const options = { rank: 0, worldSize: 1, masterAddress: '127.0.0.1', masterPort: port };
       console.log(rankEnvironment(options).rank);
       await initProcessGroup({ backend: 'gloo', ...options }).catch(({ name, message }) => console.log(name, message));`,
    );
    const { stdout, stderr } = spawnSync(
      process.execPath,
      ['--conditions=roofline-source', '--disable-warning=ExperimentalWarning', join(copy, 'use.ts')],
      { encoding: 'utf8' },
    );
    expect(stderr).toBe('');
    const [rank, error] = stdout.split('\n');
    expect(rank).toBe('0');
    expect(error).toContain("LibraryNotFoundError gloo's shim was not found");
    expect(error).toContain('apt-get install libgloo-dev g++');
    expect(error).toContain(`node ${join(copy, 'native/build.mjs')}`);
  } finally {
    rmSync(copy, { recursive: true });
  }
});
