// Is alone in a process: a stand-in for CUPTI's library stays loaded.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ffi } from '../../src/base/host/ffi.ts';
import { type Cupti, hostClock, loadCupti } from '../../src/cupti/cupti.ts';

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

  const launch = (): ((micros: number, kernels?: number) => number) => {
    const fake = ffi().load(library).func('int fakeLaunch(uint micros, uint kernels)');
    return (micros, kernels = 1) => fake(micros, kernels) as number;
  };
  it('brings records from a foreign thread, between those that it was started and stopped for', async () => {
    const [cupti, fakeLaunch] = [open(), launch()];
    for (let round = 0; round < 2; round++) {
      cupti.start();
      for (const micros of [1, 3, 2]) fakeLaunch(micros);
      const { activities, droppedRecords } = await cupti.stop();
      expect(droppedRecords).toBe(3);
      expect(activities.map(({ name }) => name)).toEqual(Array(3).fill('_Z5scaleIfEvPT_'));
    }
  });

  it('gives buffers to threads that the blocked one waits for', async () => {
    const cupti = open();
    const launchElsewhere = ffi().load(library).func('int fakeLaunchElsewhere()');
    cupti.start();
    for (let i = 0; i < 3; i++) expect(launchElsewhere()).toBe(0);
    expect((await cupti.stop()).activities).toHaveLength(3);
  });

  it('takes any number of full buffers while the thread that fills them never rests', async () => {
    const [cupti, fakeLaunch] = [open(), launch()];
    const limit = ffi().load(library).func('void fakeBufferLimit(size_t bytes)');
    limit(1000);
    cupti.start();
    for (let i = 0; i < 200; i++) fakeLaunch(0);
    const { activities, droppedRecords } = await cupti.stop();
    limit(0);
    expect(activities).toHaveLength(200);
    expect(droppedRecords).toBe(3);
  });

  it('records nothing outside of start and stop', async () => {
    const [cupti, fakeLaunch] = [open(), launch()];
    fakeLaunch(1);
    cupti.start();
    const { activities, queuedAtMs } = await cupti.stop();
    expect([activities.length, queuedAtMs.size]).toEqual([0, 0]);
  });
});

describe('hostClock', () => {
  it('follows a clock that runs slower', () => {
    const toMs = hostClock({ ns: 1_000n, ms: 5 }, { ns: 1_000n + 2_000_000n, ms: 9 });
    expect(toMs(0)).toBe(5);
    expect(toMs(500_000)).toBeCloseTo(6, 12);
  });
});
