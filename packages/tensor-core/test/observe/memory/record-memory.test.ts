import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import { observers } from '../../../src/op/observers.ts';
import { CachingAllocator } from '@roofline/cuda/parts';
import { openEmulatedDevice } from '../../../src/testing/emulated-device.ts';

const mebibyte = 2 ** 20;

const bytesHeld = (record: t.MemoryRecord) => {
  let bytes = 0;
  for (const { startUs, bytes: held } of record.allocations) if (startUs === null) bytes += held;
  for (const event of record.events) {
    if ('allocation' in event) bytes += (event.action === 'allocate' ? 1 : -1) * event.allocation.bytes;
  }
  return bytes;
};

describe('recordMemory on the CPU', () => {
  it('reports size, op, shape, range, phase and calls', () => {
    using x = t.ones([64, 32]);
    const record = t.recordMemory(function user() {
      t.range('forward', () => t.range('layer', () => t.scope(() => void t.exp(x))));
    });
    const made = record.allocations.filter(({ startUs }) => startUs !== null);
    expect(made).toHaveLength(1);
    expect(made[0]).toMatchObject({
      requestedBytes: 64 * 32 * 4,
      kind: 'storage',
      range: ['forward', 'layer'],
      phase: 'forward',
      op: 'exp',
      dtype: 'float32',
      shape: [64, 32],
    });
    const { stack, startUs, endUs } = made[0]!;
    expect(endUs!).toBeGreaterThanOrEqual(startUs!);
    expect(stack.some(({ name, file }) => name.includes('user') && file === import.meta.filename)).toBe(true);
    expect(stack.some(({ file }) => file.includes('/tensor-core/src/') || file.startsWith('node:'))).toBe(
      false,
    );
    expect(
      record.events
        .map(({ action }) => action)
        .filter((action) => action !== 'reserve' && action !== 'enter'),
    ).toEqual(['allocate', 'free']);
  });

  it('sums up to what the device counts, before, during and after', () => {
    const cpu = t.device('cpu');
    using w = t.ones([128, 128]).requiresGrad_();
    cpu.resetPeakMemory();
    const record = t.recordMemory(() =>
      t.scope(() => {
        const loss = t.range('forward', () => t.sum(t.exp(t.matmul(w, w))));
        t.range('backward', () => loss.backward());
        t.range('optimizer', () => t.addInPlace(w.detach(), w.grad!));
      }),
    );
    const statistics = cpu.memoryStatistics();
    expect(bytesHeld(record)).toBe(statistics.allocatedBytes);
    const peak = t.peakMemory(record)!;
    expect(peak.bytes).toBe(statistics.peakAllocatedBytes);
    expect(peak.live.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(peak.bytes);
    const phases = ['forward', 'backward', 'optimizer'].map((phase) => t.peakMemory(record, phase)!.bytes);
    expect(Math.max(...phases)).toBe(peak.bytes);
    expect(t.peakMemory(record, 'nothing')).toBeNull();
    const idle = t.recordMemory(() => t.range('optimizer', () => 0));
    expect(t.peakMemory(idle, 'optimizer')!.bytes).toBe(statistics.allocatedBytes);
    expect(t.reservedOverTime(record).at(-1)![1]).toBe(statistics.reservedBytes);
    const still = record.allocations.filter(({ endUs }) => endUs === null);
    expect(still.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(statistics.allocatedBytes);
  });

  it('ends with its function, thrown out of or not, and refuses a second at a time', () => {
    const boom = () => t.recordMemory(() => t.recordMemory(() => 0));
    expect(boom).toThrow(/being recorded already/);
    expect(t.recordMemory(() => 7).result).toBe(7);
    expect(t.device('cpu').observeMemory(null)).toBeNull();
    expect(observers).toHaveLength(0);
  });

  it('lets an observer of ops see on', () => {
    const seen: string[] = [];
    const stop = t.observeOps({ before: ({ name }) => void seen.push(name) });
    t.recordMemory(() => t.scope(() => void t.exp(t.ones([2]))));
    stop();
    expect(seen).toContain('exp');
  });
});

describe('recordMemory on a stand-in for a GPU', () => {
  it('sees segments, blocks and workspaces', () => {
    const device = openEmulatedDevice();
    const held = device.allocate(100);
    const record = t.recordMemory(
      () => {
        const block = device.allocateBlock(3 * mebibyte);
        device.free(device.allocate(1000));
        device.freeBlock(block);
        device.emptyCache();
      },
      { device },
    );
    expect(
      record.allocations.map(({ kind, requestedBytes, bytes }) => [kind, requestedBytes, bytes]),
    ).toEqual([
      [null, 100, 512],
      ['workspace', 3 * mebibyte, 3 * mebibyte],
      ['storage', 1000, 1024],
    ]);
    expect(record.events.map(({ action }) => action)).toEqual([
      'reserve',
      'allocate',
      'allocate',
      'free',
      'free',
      'release',
    ]);
    expect(record.reservedBytesBefore).toBe(2 * mebibyte);
    expect(t.reservedOverTime(record).map(([, bytes]) => bytes / mebibyte)).toEqual([2, 22, 2]);
    expect(record.segments).toHaveLength(1);
    expect(record.segments[0]!.blocks.map(({ size, requestedBytes }) => [size, requestedBytes])).toEqual([
      [512, 100],
      [2 * mebibyte - 512, null],
    ]);
    device.free(held);
  });
});

describe('CachingAllocator.segments', () => {
  it('covers each segment without gaps through splits and merges', () => {
    let next = mebibyte;
    const source = {
      reserve: (bytes: number) => (next += 64 * mebibyte) - bytes,
      release: () => undefined,
    };
    const queue = { recordEvent: () => ({ dispose: () => undefined }), waitFor: () => undefined };
    const allocator = new CachingAllocator(source, queue);
    const blocks = [300, 5000, 3 * mebibyte, 700 * 1024, 2 * mebibyte].map((bytes) =>
      allocator.allocate(bytes)!,
    );
    allocator.free(blocks[1]!);
    allocator.free(blocks[2]!);
    const segments = allocator.segments();
    for (const { address, bytes, blocks: pieces } of segments) {
      let end = address;
      for (const piece of pieces) {
        expect(piece.address).toBe(end);
        end += piece.size;
      }
      expect(end - address).toBe(bytes);
    }
    const all = segments.flatMap(({ blocks: pieces }) => pieces);
    const allocated = all.reduce((sum, { allocatedBytes }) => sum + allocatedBytes, 0);
    expect(allocated).toBe(allocator.statistics.allocatedBytes);
    expect(segments.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(allocator.statistics.reservedBytes);
  });
});

describe('savedForBackward', () => {
  it('lists each storage once, without the leaves', () => {
    using w = t.ones([8, 8]).requiresGrad_();
    using x = t.ones([4, 8]);
    t.scope(() => {
      const y = t.range('layer', () => t.exp(t.matmul(x, w)));
      const saved = t.savedForBackward(t.sum(t.mul(y, y)));
      expect(saved).toEqual([
        expect.objectContaining({ op: 'matmul', shape: [4, 8], byteLength: 128, range: ['layer'] }),
        expect.objectContaining({ op: 'exp', shape: [4, 8], byteLength: 128, range: ['layer'] }),
      ]);
      expect(saved[0]!.address).toBe(x.storage.buffer.address);
      expect(t.savedForBackward(x)).toEqual([]);
    });
  });

  it('distinguishes casts of parameters from activations', () => {
    using w = t.ones([8, 8]).requiresGrad_();
    using x = t.ones([4, 8]).requiresGrad_();
    t.scope(() => {
      const saved = t.savedForBackward(
        t.autocast('bfloat16', () => t.sum(t.matmul(t.exp(x), t.transpose(w)))),
      );
      const casts = saved.map(({ shape, dtype, isParameterCast }) => [shape, dtype, isParameterCast]);
      expect(casts).toContainEqual([[8, 8], 'bfloat16', true]);
      expect(casts).toContainEqual([[4, 8], 'bfloat16', false]);
    });
  });
});
