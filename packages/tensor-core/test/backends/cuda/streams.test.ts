import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { CudaDevice } from '../../../src/backends/cuda/device.ts';
import { ffi } from '@roofline/cuda/host';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../src/testing/emulated-device.ts';

const mebibyte = 2 ** 20;
const seeds = Array.from({ length: 12 }, (_, i) => i + 1);
const opened = new Map<number, CudaDevice>();

/** An emulated GPU that draws its orders from `seed`. */
function emulated(seed: number): CudaDevice {
  let device = opened.get(seed);
  if (!device) opened.set(seed, (device = openEmulatedDevice(2 ** 28, undefined, undefined, seed)));
  return device;
}

describe('onStream', () => {
  it('changes the current stream for the call, nested ones too, and gives back what fn returns', () => {
    const device = openEmulatedDevice();
    const first = device.stream;
    const [a, b] = [device.createStream(), device.createStream()];
    const seen = device.onStream(a, () => [
      device.stream,
      device.onStream(b, () => device.stream),
      device.stream,
    ]);
    expect(seen).toEqual([a, b, a]);
    expect(new Set([first, a, b].map(({ handle }) => handle)).size).toBe(3);
    expect(device.stream).toBe(first);
  });

  it('goes back to the stream before if fn throws', () => {
    const device = openEmulatedDevice();
    const first = device.stream;
    const fail = () => {
      throw new RangeError('inside');
    };
    expect(() => device.onStream(device.createStream(), fail)).toThrow(RangeError);
    expect(device.stream).toBe(first);
  });

  it('refuses async functions and streams of other devices', () => {
    const device = openEmulatedDevice();
    const first = device.stream;
    expect(() => device.onStream(device.createStream(), async () => 1)).toThrow(
      /onStream: the function is async/,
    );
    expect(device.stream).toBe(first);
    expect(() => device.onStream(openEmulatedDevice().createStream(), () => 1)).toThrow(/none of cuda:0's/);
  });

  it('queues copies, fills and events on the current stream', () => {
    const device = openEmulatedDevice();
    const other = device.createStream();
    const buffer = device.allocate(4);
    const event = device.onStream(other, () => {
      device.write(buffer, 0, Uint8Array.of(1, 2, 3, 4));
      return device.recordEvent();
    });
    device.stream.synchronize();
    expect(event.hasCompleted()).toBe(false);
    other.synchronize();
    expect(event.hasCompleted()).toBe(true);
    const bytes = new Uint8Array(4);
    device.read(buffer, 0, bytes);
    expect([...bytes]).toEqual([1, 2, 3, 4]);
  });
});

describe('CudaDevice.synchronize', () => {
  it('waits for every stream', () => {
    const device = openEmulatedDevice();
    const events = [device.stream, device.createStream(), device.createStream()].map((stream) =>
      stream.recordEvent(),
    );
    device.synchronize();
    expect(events.map((event) => event.hasCompleted())).toEqual([true, true, true]);
  });
});

describe('streams', () => {
  it('copy between device and pinned memory in their order', () => {
    const device = openEmulatedDevice();
    const [stream, buffer] = [device.createStream(), device.allocate(1000)];
    using pinned = device.allocatePinned(1000);
    pinned.bytes.fill(5);
    stream.copy(buffer.address, pinned.address, 1000);
    stream.fill(buffer.address + 10, 9, 3);
    stream.copy(pinned.address, buffer.address, 1000);
    expect(pinned.bytes.every((byte) => byte === 5)).toBe(true);
    stream.synchronize();
    expect([...pinned.bytes.subarray(8, 15)]).toEqual([5, 5, 9, 9, 9, 5, 5]);
  });

  it('call C functions when their turn comes', () => {
    const device = openEmulatedDevice();
    const stream = device.createStream();
    const calls: [number, boolean][] = [];
    const before = stream.recordEvent();
    const type = ffi().proto('void RooflineTestHostFunction(uintptr_t argument)');
    const pointer = ffi().register(
      (argument: number) => calls.push([argument, before.hasCompleted()]),
      ffi().pointer(type),
    );
    stream.launchHostFunction(Number(pointer), 42);
    expect(calls).toEqual([]);
    stream.synchronize();
    expect(calls).toEqual([[42, true]]);
    ffi().unregister(pointer);
    expect(() => stream.launchHostFunction(0)).toThrow(/address of a C function/);
    expect(() => stream.launchHostFunction(NaN)).toThrow(/address of a C function/);
  });
});

describe('PinnedMemory', () => {
  it('refuses invalid sizes, and use after free', () => {
    const device = openEmulatedDevice();
    for (const bytes of [0, -1, 0.5, NaN])
      expect(() => device.allocatePinned(bytes)).toThrow(/no number of bytes/);
    const pinned = device.allocatePinned(10);
    pinned.free();
    pinned.free();
    expect(() => pinned.bytes).toThrow(/was freed/);
  });
});

describe('writes', () => {
  it('reuse the staging memory only when its copies have run, on each stream', () => {
    const device = openEmulatedDevice();
    const streams = [device.stream, device.createStream()];
    const pieces = Array.from({ length: 12 }, (_, i) => ({
      stream: streams[i % 2]!,
      bytes: new Uint8Array(3 * mebibyte).fill(i + 1),
      buffer: device.allocate(3 * mebibyte),
    }));
    for (const { stream, bytes, buffer } of pieces)
      device.onStream(stream, () => device.write(buffer, 0, bytes));
    device.synchronize();
    for (const { bytes, buffer } of pieces) {
      const back = new Uint8Array(bytes.length);
      device.read(buffer, 0, back);
      expect(Buffer.compare(back, bytes)).toBe(0);
      device.free(buffer);
    }
  });

  it('leave the caller free to change the bytes at once', () => {
    const device = openEmulatedDevice();
    const [bytes, buffer] = [Uint8Array.of(1, 2, 3), device.allocate(3)];
    device.write(buffer, 0, bytes);
    bytes.fill(9);
    device.read(buffer, 0, bytes);
    expect([...bytes]).toEqual([1, 2, 3]);
  });
});

const launches = describe.skipIf(!hostCompilerVersion());

launches('work on two streams', () => {
  /** x + 1 on a stream of its own, after what the first one wrote if `waits`. */
  function addOnOther(device: CudaDevice, waits: boolean): number[] {
    return t.scope(() => {
      const other = device.createStream();
      const x = t.full([300], 4, { device });
      if (waits) other.waitFor(device.recordEvent({ timing: false }));
      const y = device.onStream(other, () => t.add(x, 1));
      return device.onStream(other, () => y.toFlatArray()) as number[];
    });
  }

  it('is right where it waits for what it reads', () => {
    for (const seed of seeds) expect(addOnOther(emulated(seed), true)).toEqual(new Array(300).fill(5));
  });

  it('shows on the emulated GPU where a wait is missing', () => {
    expect(seeds.some((seed) => addOnOther(emulated(seed), false).some(Number.isNaN))).toBe(true);
  });

  it('waits for an event as it was when asked', () => {
    const device = emulated(1);
    const other = device.createStream();
    const event = device.recordEvent({ timing: false });
    other.waitFor(event);
    const late = device.createStream();
    device.stream.waitFor(late.recordEvent({ timing: false }));
    other.synchronize();
    expect(event.hasCompleted()).toBe(true);
  });
});

launches('memory that two streams use', () => {
  const count = 2 ** 17;

  /** Sums x on another stream, frees x at once, and overwrites the memory allocated next on the first stream. */
  function freeWhileUsed(device: CudaDevice): { sum: number; reused: boolean } {
    return t.scope(() => {
      const other = device.createStream();
      const x = t.full([count], 2, { device });
      other.waitFor(device.recordEvent({ timing: false }));
      const sum = device.onStream(other, () => t.sum(x));
      const { address } = x;
      x.dispose();
      const next = t.full([count], 9, { device });
      const reused = next.address === address;
      return { sum: device.onStream(other, () => sum.item()) as number, reused };
    });
  }

  it('is handed out again only after both', () => {
    for (const seed of seeds.slice(0, 8)) {
      const device = openEmulatedDevice(2 ** 26, undefined, undefined, seed);
      // The rest of x's segment, so that only its block can be handed out.
      for (let i = 0; i < 3; i++) device.allocate(4 * count);
      expect(freeWhileUsed(device)).toEqual({ sum: 2 * count, reused: true });
      expect(freeWhileUsed(device)).toEqual({ sum: 2 * count, reused: true });
    }
  });

  it('goes back to the stream that it was allocated on, whichever is current when it is freed', () => {
    const device = emulated(1);
    const other = device.createStream();
    const block = device.onStream(other, () => device.allocate(12 * mebibyte));
    device.free(block);
    const here = device.allocate(12 * mebibyte);
    const there = device.onStream(other, () => device.allocate(12 * mebibyte));
    expect(there.address).toBe(block.address);
    expect(here.address).not.toBe(block.address);
    device.free(here);
    device.free(there);
  });

  it('waits for uses that only the caller knows, if they are recorded', () => {
    let shown = 0;
    for (const seed of seeds) {
      for (const records of [true, false]) {
        const device = openEmulatedDevice(2 ** 26, undefined, undefined, seed);
        const other = device.createStream();
        const [from, to] = [device.allocate(4096), device.allocate(4096)];
        device.write(from, 0, new Uint8Array(4096).fill(3));
        other.waitFor(device.recordEvent({ timing: false }));
        other.copy(to.address, from.address, 4096);
        if (records) device.recordStream(from, other);
        device.free(from);
        const back = new Uint8Array(4096);
        device.write(device.allocate(2 * mebibyte), 0, new Uint8Array(2 * mebibyte));
        device.synchronize();
        device.read(to, 0, back);
        if (records) expect(back.every((byte) => byte === 3)).toBe(true);
        else if (back.some((byte) => byte !== 3)) shown++;
      }
    }
    expect(shown).toBeGreaterThan(0);
  });

  it('waits for writes that another stream has queued', () => {
    for (const seed of seeds) {
      const device = openEmulatedDevice(2 ** 26, undefined, undefined, seed);
      const other = device.createStream();
      const first = device.allocate(12 * mebibyte);
      device.onStream(other, () => device.write(first, 0, new Uint8Array(16).fill(1)));
      device.free(first);
      const second = device.allocate(12 * mebibyte);
      expect(second.address).toBe(first.address);
      device.write(second, 0, new Uint8Array(16).fill(2));
      device.synchronize();
      const bytes = new Uint8Array(16);
      device.read(second, 0, bytes);
      expect([...bytes]).toEqual(new Array(16).fill(2));
    }
  });

  it('waits for gradients that another stream writes to a buffer', () => {
    for (const seed of seeds.slice(0, 8)) {
      const device = openEmulatedDevice(2 ** 26, undefined, undefined, seed);
      const other = device.createStream();
      const [x, weight] = [t.ones([4, 16], { device }), t.ones([16, 16], { device, requiresGrad: true })];
      const buffer = t.zeros([16, 16], { device });
      weight.setGradientBuffer(buffer);
      other.waitFor(device.recordEvent());
      device.onStream(other, () => t.scope(() => t.sum(t.matmul(x, weight)).backward()));
      expect(weight.grad!.address).toBe(buffer.address);
      weight.grad!.dispose();
      buffer.dispose();
      const next = Array.from({ length: 30 }, () => t.full([16, 16], 7, { device }));
      device.synchronize();
      expect(next.filter((each) => each.toFlatArray().some((value) => value !== 7))).toEqual([]);
    }
  });

  it('refuses to free a block twice while it waits', () => {
    const device = openEmulatedDevice();
    const block = device.allocate(512);
    device.recordStream(block, device.createStream());
    device.free(block);
    expect(() => device.free(block)).toThrow(/free already/);
  });

  it('shows memory that is read after its end', () => {
    const device = openEmulatedDevice();
    const block = device.allocate(512);
    device.write(block, 0, new Uint8Array(512));
    device.free(block);
    const bytes = new Uint8Array(512);
    device.read(block, 0, bytes);
    expect(bytes.every((byte) => byte === 0xff)).toBe(true);
  });
});
