import { describe, expect, it } from 'vitest';
import { sortRecords } from '../../src/cupti/cupti.ts';
import { type ActivityRecord, type GpuActivity, readActivityRecord } from '../../src/cupti/cupti-records.ts';

const baseNs = 1_760_000_000_000_000_000n;
const names = new Map([
  [0x7fff_1234_5678, 'softmax_rows'],
  [0x7fff_0000_0010, '_Z1fIiEvT_'],
]);
const context = { baseNs, textAt: (address: number) => names.get(address)! };

/** A record's bytes as CUPTI lays them out: each field at its offset in cupti_activity.h. */
function record(
  size: number,
  fields: readonly (readonly [offset: number, value: number | bigint])[],
): DataView {
  // Everything else is noise, which must not be read.
  const bytes = new DataView(new Uint8Array(size).fill(0xab).buffer);
  for (const [offset, value] of fields) {
    if (typeof value === 'bigint') bytes.setBigUint64(offset, value, true);
    else bytes.setUint32(offset, value, true);
  }
  return bytes;
}

// kind, start, end, device, context, stream, grid, block, correlation, name, graph node: CUpti_ActivityKernel10.
const kernel = record(224, [
  [0, 10],
  [16, baseNs + 1_000_001n],
  [24, baseNs + 1_005_003n],
  [40, 1],
  [48, 13],
  [52, 132],
  [56, 2],
  [60, 3],
  [64, 256],
  [68, 1],
  [72, 1],
  [92, 77],
  [104, 0x7fff_1234_5678n],
  [144, 51n],
]);

describe('CUPTI records', () => {
  it('reads a kernel to the nanosecond', () => {
    expect(readActivityRecord(kernel, 0, context)).toEqual({
      kind: 'kernel',
      name: 'softmax_rows',
      startNs: 1_000_001,
      endNs: 1_005_003,
      device: 1,
      stream: 13,
      correlationId: 77,
      graphNodeId: 51,
      byteLength: null,
      grid: [132, 2, 3],
      block: [256, 1, 1],
    });
  });

  it('reads copies by their direction, and fills', () => {
    const fields = [
      [8, 4096n],
      [16, baseNs + 5n],
      [24, baseNs + 9n],
      [32, 0],
      [40, 7],
      [44, 78],
      [64, 52n],
    ] as const;
    const copy = record(80, [[0, 1], [4, 0x0000_0001], ...fields]);
    expect(readActivityRecord(copy, 0, context)).toMatchObject({
      kind: 'memcpy',
      name: '[CUDA memcpy HtoD]',
      byteLength: 4096,
      startNs: 5,
      endNs: 9,
      stream: 7,
      correlationId: 78,
      graphNodeId: 52,
    });
    const fill = record(80, [[0, 2], [4, 0], ...fields]);
    expect(readActivityRecord(fill, 0, context)).toMatchObject({
      kind: 'memset',
      byteLength: 4096,
      graphNodeId: 52,
    });
  });

  it('reads copies between GPUs, whose records name both before what ties them to a call', () => {
    // CUpti_ActivityMemcpyPtoP4: contexts and devices of the source and the destination lie at 44 to 56.
    const copy = record(96, [
      ...([
        [0, 22],
        [4, 0x0003_030a],
        [8, 4096n],
        [16, baseNs + 5n],
        [24, baseNs + 9n],
      ] as const),
      ...([
        [32, 1],
        [40, 7],
        [44, 0],
        [48, 2],
        [52, 1],
        [56, 3],
        [60, 78],
        [72, 52n],
      ] as const),
    ]);
    expect(readActivityRecord(copy, 0, context)).toMatchObject({
      kind: 'memcpy',
      name: '[CUDA memcpy PtoP]',
      byteLength: 4096,
      startNs: 5,
      endNs: 9,
      device: 1,
      stream: 7,
      correlationId: 78,
      graphNodeId: 52,
    });
  });

  it('reads records one behind the other, and sorts calls from what ran', () => {
    const call = record(40, [
      [0, 4],
      [8, baseNs + 100n],
      [16, baseNs + 300n],
      [32, 77],
    ]);
    const other = record(24, [[0, 39]]);
    const buffer = new Uint8Array(call.byteLength + other.byteLength + kernel.byteLength);
    buffer.set(new Uint8Array(call.buffer), 0);
    buffer.set(new Uint8Array(other.buffer), call.byteLength);
    buffer.set(new Uint8Array(kernel.buffer), call.byteLength + other.byteLength);
    const bytes = new DataView(buffer.buffer);
    const offsets = [0, call.byteLength, call.byteLength + other.byteLength];
    const records = offsets.map((offset) => readActivityRecord(bytes, offset, context));
    expect(records.map((each) => each?.kind)).toEqual(['api-call', undefined, 'kernel']);
    const { activities, calls } = sortRecords(
      records.filter((each): each is ActivityRecord => each !== null),
    );
    expect(calls).toEqual([{ kind: 'api-call', startNs: 100, endNs: 300, correlationId: 77 }]);
    expect(activities.map(({ correlationId }) => correlationId)).toEqual([77]);
  });

  it('puts activities in the order of their start', () => {
    const at = (startNs: number): GpuActivity => ({
      ...(readActivityRecord(kernel, 0, context) as GpuActivity),
      startNs,
    });
    const { activities } = sortRecords([at(30), at(10), at(20)]);
    expect(activities.map(({ startNs }) => startNs)).toEqual([10, 20, 30]);
  });
});
