import { describe, expect, it } from 'vitest';
import {
  type Allocation,
  type CompileExplanation,
  type Tensor,
  applyOne,
  backward,
  compile,
  contiguous,
  copy,
  defineOp,
  empty,
  expand,
  fillInPlace,
  memorySnapshot,
  mul,
  ones,
  peakMemory,
  recordMemory,
  softmax,
  sum,
  tensor,
} from '../../src/index.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../src/testing.ts';

describe.skipIf(hostCompilerVersion() === null)('the memory of an executable on several streams', () => {
  it('holds no more memory where it is captured on another stream', () => {
    const gpu = openEmulatedDevice(2 ** 28);
    const other = gpu.createStream();
    const weight = ones([2 ** 16], { device: gpu, requiresGrad: true });
    const f = compile((x: Tensor) => backward(sum(mul(mul(weight, weight), x))));
    const x = ones([1], { device: gpu });
    const heldBytes = () => f.explain().at(-1)!.arenaBytes;
    for (let i = 0; i < 3; i++) f(x);
    const before = heldBytes();
    for (let i = 0; i < 3; i++) {
      const { grad } = weight;
      weight.grad = copy(grad!);
      grad!.dispose();
      other.waitFor(gpu.recordEvent());
      if (i % 2 === 0) gpu.onStream(other, () => f(x));
      else f(x);
      gpu.stream.waitFor(other.recordEvent());
      expect(heldBytes()).toBe(before);
    }
    expect(weight.grad!.toFlatArray()[0]).toBe(2 * 6);
    f.dispose();
  });

  it('finds memory for workspaces where other streams have used what is free', () => {
    const mebibyte = 2 ** 20;
    const large = defineOp<undefined>({
      name: 'large',
      autocast: 'none',
      infer: ([x]) => [x!],
      cuda: {
        kind: 'custom',
        launch(context, [x], [y]) {
          const { dtype, shape, strides } = x!;
          const workspace = { address: context.workspace(16 * mebibyte), dtype, shape, strides };
          context.copy(x!, workspace);
          context.copy(workspace, y!);
        },
      },
      cpu: { kind: 'host', run: () => undefined },
    });
    const gpu = openEmulatedDevice(64 * mebibyte);
    const other = gpu.createStream();
    const x = tensor([1, 2, 3], { device: gpu });
    const f = compile((given: Tensor) => applyOne(large, [given], undefined));
    f(x).dispose();
    gpu.emptyCache();
    const most = empty([14 * mebibyte], { device: gpu, dtype: 'float32' });
    other.waitFor(gpu.recordEvent());
    gpu.onStream(other, () => fillInPlace(most, 1));
    most.dispose();
    for (let i = 0; i < 2; i++) expect(f(x).toFlatArray()).toEqual([1, 2, 3]);
    f.dispose();
  });
});

describe.skipIf(hostCompilerVersion() === null)('the memory of an executable', () => {
  const device = openEmulatedDevice();
  const on = (values: number[] | number[][], requiresGrad = false) =>
    tensor(values, { device, requiresGrad });

  it('holds its arena, which recordings name, for as long as it exists', () => {
    const x = on(Array.from({ length: 1 << 18 }, (_, i) => i % 7));
    const f = compile(function step(given: Tensor) {
      return sum(mul(softmax(given, 0), softmax(mul(given, given), 0)));
    });
    const before = device.memoryStatistics().allocatedBytes;
    f(x).dispose();
    expect(device.memoryStatistics().allocatedBytes).toBe(before);
    const run = () => recordMemory(() => f(x).dispose(), { device });
    const isArena = ({ op }: Allocation) => op === 'arena of step';
    const capture = run();
    const arenaBytes = capture.allocations.filter(isArena).reduce((total, { bytes }) => total + bytes, 0);
    const [{ arenaBytes: reservedBytes, eagerPeakBytes }] = f.explain() as [CompileExplanation];
    expect(arenaBytes).toBeGreaterThanOrEqual(eagerPeakBytes / 2);
    expect(arenaBytes).toBeLessThanOrEqual(reservedBytes);
    device.resetPeakMemory();
    const replay = run();
    const held = replay.allocations.filter(({ startUs }) => startUs === null);
    expect(held.filter(isArena).reduce((total, { bytes }) => total + bytes, 0)).toBe(arenaBytes);
    // No intermediate result, and its result is in the arena too.
    expect(replay.allocations.filter(({ startUs }) => startUs !== null)).toEqual([]);
    expect(peakMemory(replay)!.bytes).toBe(device.memoryStatistics().peakAllocatedBytes);
    expect(Buffer.from(memorySnapshot(replay)).includes('arena of step')).toBe(true);
    f.dispose();
    expect(device.memoryStatistics().allocatedBytes).toBe(before);
  });

  it('finds room for workspaces in its arena', () => {
    const workspaceBytes = 3 * 2 ** 20;
    const busy = defineOp<undefined>({
      name: 'busy',
      autocast: 'none',
      infer: ([x]) => [x!],
      cuda: {
        kind: 'custom',
        launch(context, [x], [y]) {
          const { shape, strides, dtype, byteLength } = x!;
          // At its end, which nothing else may use meanwhile.
          const address = context.workspace(workspaceBytes) + workspaceBytes - byteLength;
          context.copy({ address: x!.address, dtype, shape, strides }, { address, dtype, shape, strides });
          context.fillBytes(y!.address, 0, byteLength);
          context.copy(
            { address, dtype, shape, strides },
            { address: y!.address, dtype, shape: y!.shape, strides: y!.strides },
          );
        },
      },
      cpu: { kind: 'host', run: () => undefined },
    });
    const x = on([1, 2, 3]);
    // The arena is as long as its result, and too short for the workspace.
    const f = compile((given: Tensor) =>
      contiguous(expand(applyOne(busy, [given], undefined), [2 ** 17, 3])),
    );
    const expected = Array.from({ length: 3 * 2 ** 17 }, (_, i) => 1 + (i % 3));
    for (let call = 0; call < 3; call++) {
      const y = f(x);
      expect(y.toFlatArray()).toEqual(expected);
      y.dispose();
    }
    const resultBytes = 3 * 2 ** 17 * 4;
    const { arenaBytes } = f.explain()[0]!;
    expect(arenaBytes).toBeGreaterThanOrEqual(workspaceBytes);
    expect(arenaBytes).toBeLessThan(workspaceBytes + resultBytes / 2);
    const { reservedBytes } = device.memoryStatistics();
    f.dispose();
    expect(reservedBytes - device.memoryStatistics().reservedBytes).toBe(arenaBytes);
  });

  it('holds no more memory after many replays', () => {
    const weight = on([1, 2, 3], true);
    const f = compile((x: Tensor) => {
      weight.grad?.dispose();
      weight.grad = null;
      const loss = sum(mul(softmax(mul(x, weight), 0), x));
      backward(loss);
      return loss.detach();
    });
    const x = on([1, 2, 3]);
    const held = (replays: number) => {
      for (let i = 0; i < replays; i++) f(x).dispose();
      device.synchronize();
      const { allocatedBytes, reservedBytes, liveStorages } = device.memoryStatistics();
      return { allocatedBytes, reservedBytes, liveStorages };
    };
    const before = held(4);
    expect(f.cache.hits).toBeGreaterThan(0);
    expect(held(200)).toEqual(before);
    f.dispose();
  });
});
