import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type Cupti, hostClock, loadCupti } from '../../../../src/devices/cuda/profiling/cupti.ts';
import * as t from '../../../../src/index.ts';
import { ffi } from '../../../../src/native/ffi.ts';
import { gpuKernels } from '../../../../src/profiler/kernels.ts';
import type { OpCall } from '../../../../src/profiler/op-recorder.ts';
import { profileDevices } from '../../../../src/profiler/profile.ts';
import { hostCompilerVersion, openEmulatedDevice } from '../../../../src/testing/emulated-device.ts';

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

  const launch = (): ((micros: number) => number) => ffi().load(library).func('int fakeLaunch(uint micros)');
  /** As an op recorder would, around a launch. */
  const timed = (work: () => void): OpCall => {
    const startMs = performance.now();
    work();
    return { startMs, endMs: performance.now() } as OpCall;
  };

  it('brings records from a foreign thread, each with the op that ran when it was queued', async () => {
    const [cupti, fakeLaunch] = [open(), launch()];
    for (let round = 0; round < 2; round++) {
      cupti.start();
      const calls = [1, 3, 2].map((micros) => timed(() => void fakeLaunch(micros)));
      fakeLaunch(5);
      calls.push(
        timed(() => {
          fakeLaunch(1);
          fakeLaunch(1);
        }),
      );
      const recorded = await cupti.stop();
      expect(recorded.droppedRecords).toBe(3);
      const kernels = gpuKernels(recorded, calls);
      expect(kernels.map(({ op }) => op)).toEqual([0, 1, 2, null, 3, 3]);
      expect(new Set(kernels.map(({ name }) => name))).toEqual(new Set(['void scale<float>(float*)']));
      expect(kernels.every(({ durationUs }) => durationUs === 0.5)).toBe(true);
    }
  });

  it.skipIf(!hostCompilerVersion())(
    'lets a profile give every kernel of a GPU its op and ranges',
    async () => {
      const fakeLaunch = launch();
      open();
      let launches = 0;
      const device = openEmulatedDevice(2 ** 30, () => {
        launches++;
        fakeLaunch(2);
      });
      const x = t.ones([64], { device });
      const work = () =>
        t.scope(() => {
          t.range('forward', () => t.range('attention.scores', () => t.exp(t.neg(x))));
          t.range('backward', () => t.mul(x, x));
        });
      work();
      launches = 0;
      const { kernels, ops, ranges, droppedRecords } = await profileDevices([device], work);
      expect(ops.map(({ name, range }) => [name, t.rangePath({ ranges }, range)])).toEqual([
        ['neg', ['forward', 'attention.scores']],
        ['exp', ['forward', 'attention.scores']],
        ['mul', ['backward']],
      ]);
      expect(kernels).toHaveLength(launches);
      expect(kernels.map(({ op }) => op)).toEqual([0, 1, 2]);
      expect(droppedRecords).toBe(3);
    },
  );

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
