import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { findPython } from '../../src/peer/find-python.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

const named = process.env['ROOFLINE_PYTHON'];
afterEach(() => {
  if (named === undefined) delete process.env['ROOFLINE_PYTHON'];
  else process.env['ROOFLINE_PYTHON'] = named;
});

it.each([
  ['/nowhere/python', 'spawn /nowhere/python ENOENT'],
  ['false', 'exit code 1'],
])('says in one line what came of ROOFLINE_PYTHON=%s', async (python, reason) => {
  process.env['ROOFLINE_PYTHON'] = python;
  const message = await findPython(['torch']).then(
    () => expect.unreachable(),
    (error: Error) => error.message,
  );
  expect(message).toContain(reason);
  expect(message).not.toContain('\n');
});

it('takes only the version from what a Python prints', async () => {
  const python = join(temporaryFolder(), 'python');
  writeFileSync(python, "#!/bin/sh\nprintf 'Welcome to site 7\\n2.11.0\\n'\n", { mode: 0o755 });
  process.env['ROOFLINE_PYTHON'] = python;
  expect(await findPython(['torch'])).toEqual({ executable: python, versions: ['2.11.0'] });
});

it('looks for one interpreter with all peers, and says what to install where there is none', async () => {
  const python = join(temporaryFolder(), 'python');
  const program =
    'echo "$2" | grep -q torch && printf "2.11.0 0.11.0\\n" || { echo "no module jax" >&2; exit 1; }';
  writeFileSync(python, `#!/bin/sh\n${program}\n`, { mode: 0o755 });
  process.env['ROOFLINE_PYTHON'] = python;
  expect(await findPython(['torch', 'jax'])).toEqual({ executable: python, versions: ['2.11.0', '0.11.0'] });
  await expect(findPython(['jax'])).rejects.toThrow(
    /^No Python with JAX was found \(.*: no module jax\)\. Set ROOFLINE_PYTHON .*`import jax`.*`python3 -m pip install "jax\[cuda13\]"`\.$/,
  );
});
