import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { PeerError } from '../../src/peer/python-peer.ts';
import { runPythonProgram } from '../../src/peer/python-program.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

/** A Python of shell, which says `words` on stderr and ends with `code`. */
function pythonThatSays(words: string, code: number): string {
  const python = join(temporaryFolder(), 'python');
  writeFileSync(python, `#!/bin/sh\nprintf %s 'printed'\ncat >&2 <<'END'\n${words}\nEND\nexit ${code}\n`, {
    mode: 0o755,
  });
  return python;
}

const failure = (python: string) =>
  runPythonProgram(python, 'torch_precision.py', []).then(
    () => expect.unreachable(),
    (error: unknown) => {
      expect(error).toBeInstanceOf(PeerError);
      return (error as PeerError).message.split('\n');
    },
  );

it('gives what a program prints', async () => {
  expect(await runPythonProgram(pythonThatSays('a warning', 0), 'torch_precision.py', [])).toBe('printed');
});

it("begins with the error that ended it, as PyTorch's other failures do, and keeps the traceback", async () => {
  const said = [
    'amp.py:214: UserWarning: In CPU autocast, but the target dtype is not supported.',
    'Traceback (most recent call last):',
    '  File "torch_precision.py", line 38, in accuracy',
    '    with torch.autocast(device.type, dtype):',
    'RuntimeError: AutocastCPU only supports Bfloat16: not Half',
  ];
  const [first, ...rest] = await failure(pythonThatSays(said.join('\n'), 1));
  expect(first).toBe('RuntimeError in PyTorch: AutocastCPU only supports Bfloat16: not Half');
  expect(rest).toEqual(expect.arrayContaining(said));
});

it.each([
  ['Segmentation fault', ['Segmentation fault']],
  ['', []],
])('says how it ended where there is no traceback: "%s"', async (said, told) => {
  const [first, ...rest] = await failure(pythonThatSays(said, 3));
  expect(first).toContain('exit code 3');
  expect(rest).toEqual(told);
});

it('says which Python could not be started', async () => {
  expect((await failure('/nowhere/python'))[0]).toContain('/nowhere/python');
});
