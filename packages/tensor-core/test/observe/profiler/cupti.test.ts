// Is alone in a process: a stand-in for CUPTI's library stays loaded.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ffi } from '@roofline/cuda/host';
import { type Cupti, loadCupti } from '@roofline/cuda/parts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import type { CudaDevice } from '../../../src/backends/cuda/device.ts';
import * as t from '../../../src/index.ts';
import { gpuKernels } from '../../../src/observe/profiler/kernels.ts';
import type { OpCall } from '../../../src/observe/profiler/op-recorder.ts';
import { profileDevices } from '../../../src/observe/profiler/profile.ts';
import { openEmulatedDevice } from '../../../src/testing/emulated-device.ts';

const folder = mkdtempSync(join(tmpdir(), 'roofline-cupti-'));
const source = join(import.meta.dirname, '../../../../cuda/test/cupti/fake-cupti.c');
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

  describe.skipIf(!hostCompilerVersion())('of a compiled function', () => {
    const opened = () => {
      const fakeLaunch = launch();
      open();
      const state = { launches: 0, lost: 0 };
      const device = openEmulatedDevice(2 ** 30, (activities) => {
        state.launches++;
        fakeLaunch(2, Math.max(0, activities - state.lost));
      });
      return { state, device };
    };
    const forwardAndBackward = (weight: t.Tensor) =>
      function step(x: t.Tensor): t.Tensor {
        weight.grad?.dispose();
        weight.grad = null;
        const loss = t.range('forward', () =>
          t.range('layer', () => t.sum(t.softmax(t.mul(t.exp(t.mul(x, weight)), 2), -1))),
        );
        t.range('backward', () => loss.backward());
        return loss.detach();
      };

    it('shows the graph: its kernels with ops and ranges as an eager profile has them, fused ops by name', async () => {
      const { state, device } = opened();
      const x = t.randn([4, 8], { device });
      const step = forwardAndBackward(t.ones([8], { device, requiresGrad: true }));
      const call = t.compile(step);
      while (call.cache.hits === 0) call(x).dispose();
      const run = (fn: typeof step) => profileDevices([device], () => fn(x).dispose());
      state.launches = 0;
      const compiled = await run(call);
      // One graph, and nothing beside it.
      expect(state.launches).toBe(1);
      const eager = await run(step);
      const pathsOf = (profile: typeof eager) =>
        new Set(profile.ops.map(({ range }) => t.rangePath(profile, range).join('/')));
      expect(pathsOf(compiled)).toEqual(pathsOf(eager));
      expect(pathsOf(eager)).toContain('backward/layer');
      const within = await profileDevices([device], () => t.range('outer', () => call(x).dispose()));
      expect(pathsOf(within)).toEqual(new Set([...pathsOf(eager)].map((path) => `outer/${path}`)));
      const looped = await profileDevices([device], () =>
        t.range('outer', () => [1, 2].forEach(() => call(x).dispose())),
      );
      expect(looped.ranges).toHaveLength(1 + 2 * compiled.ranges.length);
      const fused = compiled.ops.find(({ members }) => members.length > 0)!;
      expect(fused).toMatchObject({
        name: 'fused_mul_exp_mul',
        members: ['mul', 'exp', 'mul'],
        dtype: 'float32',
      });
      expect(t.rangePath(compiled, fused.range)).toEqual(['forward', 'layer']);
      expect(compiled.ops.length).toBeLessThan(eager.ops.length);
      // Every op has kernels of its own, in the order of the program.
      const ops = compiled.kernels.map(({ op }) => op!);
      expect(ops).toEqual(ops.toSorted((a, b) => a - b));
      expect(new Set(ops)).toEqual(new Set(compiled.ops.keys()));
      for (const { hostStartUs, hostDurationUs } of compiled.ops)
        expect(hostStartUs + hostDurationUs).toBeLessThanOrEqual(compiled.wallUs);
    });

    it('holds its first calls too: the eager one, and the one that captures', async () => {
      const { device } = opened();
      const x = t.ones([4], { device });
      const call = t.compile((y: t.Tensor) => t.relu(t.mul(y, 2)));
      const { ops, kernels } = await profileDevices([device], () => {
        for (let i = 0; i < 3; i++) call(x).dispose();
      });
      const names = ops.map(({ name }) => name);
      expect(names).toEqual(['copy', 'mul', 'relu', 'fused_mul_relu', 'fused_mul_relu']);
      expect(kernels.filter(({ op }) => op === null)).toEqual([]);
    });

    it('runs op by op for observers that do not know of replays', () => {
      const { device } = opened();
      const call = t.compile((y: t.Tensor) => t.relu(t.mul(y, 2)));
      const x = t.tensor([-1, 3], { device });
      for (let i = 0; i < 2; i++) call(x).dispose();
      const seen: string[] = [];
      const note = (observer: t.Observer) => {
        const stop = t.observeOps(observer);
        expect(call(x).toFlatArray()).toEqual([0, 6]);
        stop();
      };
      note({ before: ({ name }) => seen.push(name) });
      note({ hostRead: () => seen.push('read') });
      note({
        before: ({ name }) => seen.push(`own ${name}`),
        beforeReplay: ({ calls }) =>
          seen.push(...calls.map(({ members }) => members.map(({ op }) => op.name).join())),
        afterReplay: (_, failed) => seen.push(`failed: ${failed}`),
      });
      expect(seen).toEqual(['mul', 'relu', 'read', 'mul,relu', 'failed: false']);
    });

    it('has no ops where records were lost, of which the fake CUPTI tells each time', async () => {
      const { state, device } = opened();
      const x = t.ones([4, 4], { device });
      const call = t.compile((y: t.Tensor) => t.sum(t.softmax(y, -1)));
      for (let i = 0; i < 2; i++) call(x).dispose();
      state.lost = 1;
      const { kernels, ops } = await profileDevices([device], () => call(x).dispose());
      expect(ops.map(({ name }) => name)).toEqual(['softmax', 'sum']);
      expect(kernels.length).toBeGreaterThan(0);
      expect(new Set(kernels.map(({ op }) => op))).toEqual(new Set([null]));
    });
  });

  describe('a profile', () => {
    const fakes = () => {
      const handle = ffi().load(library);
      return {
        queue: handle.func('void fakeQueue()'),
        runQueued: handle.func('void fakeRunQueued()'),
        refuse: handle.func('void fakeRefusal(int kind)'),
        enabled: handle.func('int fakeEnabled()'),
      };
    };
    const deviceThat = (synchronize: () => void) => [{ synchronize } as unknown as CudaDevice];

    it('that throws keeps what it queued out of the next', async () => {
      open();
      const [fakeLaunch, { queue, runQueued }] = [launch(), fakes()];
      for (const isIdleAgain of [true, false]) {
        const failed = profileDevices(
          deviceThat(() => isIdleAgain && runQueued()),
          () => {
            queue();
            throw new Error('of the profiled function');
          },
        );
        await expect(failed).rejects.toThrow('of the profiled function');
        const next = await profileDevices(deviceThat(runQueued), () => void fakeLaunch(1));
        expect(next.kernels).toHaveLength(1);
        expect(next.kernels[0]!.startUs).toBeGreaterThanOrEqual(0);
      }
    });

    it('throws what its function threw, whatever the device and CUPTI say when it ends', async () => {
      open();
      const { refuse, enabled } = fakes();
      const device = deviceThat(() => {
        if (isBroken) throw new Error('of the device');
      });
      let isBroken = false;
      const failed = profileDevices(device, () => {
        isBroken = true;
        refuse(-1);
        throw new Error('of the profiled function');
      });
      try {
        await expect(failed).rejects.toThrow('of the profiled function');
      } finally {
        refuse(0);
      }
      expect(enabled()).toBe(0);
    });

    it('is under way until its records have been collected', async () => {
      open();
      const fakeLaunch = launch();
      const device = deviceThat(() => {});
      let second: Promise<unknown> = Promise.resolve();
      const first = profileDevices(device, () => {
        fakeLaunch(1);
        // Once the function has ended, and before CUPTI has told what it recorded.
        queueMicrotask(() =>
          queueMicrotask(() => {
            second = profileDevices(device, () => {}).catch(String);
          }),
        );
      });
      expect((await first).kernels).toHaveLength(1);
      expect(await second).toContain('recorded already');
    });

    it('that cannot begin leaves nothing recording', async () => {
      open();
      const { refuse, enabled } = fakes();
      refuse(1);
      try {
        await expect(
          profileDevices(
            deviceThat(() => {}),
            () => {},
          ),
        ).rejects.toThrow('cuptiActivityEnable failed');
      } finally {
        refuse(0);
      }
      expect(enabled()).toBe(0);
      expect(
        (
          await profileDevices(
            deviceThat(() => {}),
            () => {},
          )
        ).kernels,
      ).toEqual([]);
    });
  });
});
