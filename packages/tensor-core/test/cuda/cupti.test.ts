import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type Cupti, loadCupti, maxMarks } from '../../src/cuda/cupti.ts';
import { gpuKernels } from '../../src/profiler/kernels.ts';

const folder = mkdtempSync(join(tmpdir(), 'roofline-cupti-'));
const source = join(import.meta.dirname, 'fake-cupti.c');
const library = join(folder, 'libcupti.so.13');
const compiled = spawnSync('cc', ['-shared', '-fPIC', '-o', library, source, '-lpthread']);
const hasCompiler = compiled.error === undefined;

describe.skipIf(!hasCompiler)('CUPTI, played by a library of C', () => {
  const open = (): Cupti => {
    expect(String(compiled.stderr)).toBe('');
    process.env['ROOFLINE_CUDA_LIBRARIES'] = folder;
    return loadCupti();
  };
  afterAll(() => rmSync(folder, { recursive: true }));

  it('brings records from a foreign thread, each with the mark of its call', async () => {
    const cupti = open();
    for (const marks of [
      [5, 6, 7],
      [1, 2],
    ]) {
      cupti.start();
      marks.forEach((mark) => cupti.mark(mark));
      const recorded = await cupti.stop();
      expect(recorded.droppedRecords).toBe(3);
      expect(gpuKernels(recorded).map(({ name, op, startUs }) => [name, op, startUs])).toEqual(
        marks.map((mark) => ['void scale<float>(float*)', mark, mark]),
      );
    }
  });

  it('records nothing outside of start and stop', async () => {
    const cupti = open();
    cupti.mark(1);
    cupti.start();
    expect((await cupti.stop()).activities).toEqual([]);
  });

  it('refuses more marks than one buffer holds, and goes on afterwards', async () => {
    const cupti = open();
    cupti.start();
    for (let mark = 0; mark < maxMarks; mark++) cupti.mark(mark);
    expect(() => cupti.mark(maxMarks)).toThrow('profile fewer steps at a time');
    expect((await cupti.stop()).activities).toHaveLength(maxMarks);
    cupti.start();
    cupti.mark(0);
    expect((await cupti.stop()).activities).toHaveLength(1);
  });
});
