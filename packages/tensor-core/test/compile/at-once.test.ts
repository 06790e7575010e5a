import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { type Trained, compileAtOnce } from './at-once/processes.ts';

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'roofline-at-once-'))));
afterEach(() => rmSync(folder, { recursive: true }));

function expectTheSame(all: readonly Trained[]): void {
  expect(all[0]!.compiled).toMatch(/^([0-9a-f]+ ){4}[0-9a-f]{512}$/);
  for (const { compiled, eager } of all)
    expect({ compiled, eager }).toEqual({ compiled: all[0]!.compiled, eager: all[0]!.compiled });
}

it('two processes compile the same function at once on the CPU', async () => {
  expectTheSame(await compileAtOnce(2, 'cpu', {}));
});

it.skipIf(hostCompilerVersion() === null)(
  'two processes compile the same program at once on an emulated GPU, into one cache that is empty before',
  async () => {
    const both = await compileAtOnce(2, 'emulated', { TMPDIR: folder });
    expectTheSame(both);
    // No partial kernel or runtime file is left.
    const left = readdirSync(folder, { recursive: true, encoding: 'utf8' });
    expect(left.filter((path) => path.endsWith('.cubin')).length).toBeGreaterThan(3);
    const finished =
      /^(roofline-emulated-kernels|roofline-emulator-[0-9a-f]{64})(\/\w+\.cubin|\/cuda-on-host\.so)?$/;
    expect(left.filter((path) => !finished.test(path) && !path.startsWith('node-compile-cache'))).toEqual([]);

    // A third one finds all kernels complete: its compiler can only report its version.
    const bin = join(folder, 'bin');
    mkdirSync(bin);
    writeFileSync(join(bin, 'g++'), `#!/bin/sh\n[ "$1" = --version ] && echo '${hostCompilerVersion()}'\n`);
    chmodSync(join(bin, 'g++'), 0o755);
    const path = `${bin}${delimiter}${process.env['PATH']}`;
    expectTheSame([both[0]!, ...(await compileAtOnce(1, 'emulated', { TMPDIR: folder, PATH: path }))]);
  },
);
