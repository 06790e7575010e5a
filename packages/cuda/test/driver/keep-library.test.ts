import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'roofline-library-'));
const source = join(folder, 'busy.c');
// A library whose thread works on, as NCCL's and CUPTI's do.
writeFileSync(
  source,
  `#include <pthread.h>
static volatile unsigned long turns;
static void *work(void *unused) { for (;;) turns++; return unused; }
int begin(void) { pthread_t thread; return pthread_create(&thread, 0, work, 0); }`,
);
const library = join(folder, 'libbusy.so');
const compiled = spawnSync('cc', ['-shared', '-fPIC', '-o', library, source, '-lpthread']);

describe.skipIf(compiled.error !== undefined || process.platform !== 'linux')(
  'a library with a thread of its own',
  () => {
    afterAll(() => rmSync(folder, { recursive: true }));

    it('stays in memory while the process ends', () => {
      expect(String(compiled.stderr)).toBe('');
      const search = new URL('../../src/driver/library-search.ts', import.meta.url).href;
      // Ends of a process are many, and what the thread meets is chance.
      const program = `
        import { loadLibrary } from ${JSON.stringify(search)};
        const { handle } = loadLibrary({ name: 'busy', files: ['libbusy.so'], remedy: 'none' });
        if (handle.func('int begin()')() !== 0) throw new Error('no thread');`;
      for (let i = 0; i < 3; i++) {
        const { status, signal, stderr } = spawnSync(
          process.execPath,
          [
            '--conditions=roofline-source',
            '--disable-warning=ExperimentalWarning',
            '--input-type=module',
            '-e',
            program,
          ],
          { env: { ...process.env, ROOFLINE_CUDA_LIBRARIES: folder }, encoding: 'utf8' },
        );
        expect({ status, signal, stderr }).toEqual({ status: 0, signal: null, stderr: '' });
      }
    });
  },
);
