import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { Allocation } from '../../../src/observe/memory/record.ts';

const hasPython = spawnSync('python3', ['--version']).status === 0;

function readByPython(bytes: Uint8Array): unknown {
  const script = 'import sys, json, pickle\nprint(json.dumps(pickle.load(sys.stdin.buffer)))';
  const { stdout, stderr } = spawnSync('python3', ['-c', script], { input: bytes });
  expect(stderr.toString()).toBe('');
  return JSON.parse(stdout.toString());
}

const calls = [{ name: 'train', file: 'train.ts', line: 7, column: 3 }];
const nothing = { kind: null, endUs: null, range: [], phase: null, op: null, dtype: null, shape: null };
const held: Allocation = {
  ...nothing,
  address: 0,
  bytes: 512,
  requestedBytes: 100,
  startUs: null,
  stack: [],
};
const output: Allocation = {
  ...{ ...nothing, kind: 'storage', range: ['forward', 'layer'], op: 'exp', stack: calls },
  ...{ address: 512, bytes: 1024, requestedBytes: 1000, startUs: 2 },
};
const workspace: Allocation = {
  ...{ ...nothing, kind: 'workspace', op: 'matmul', stack: calls },
  ...{ address: 1536, bytes: 512, requestedBytes: 8, startUs: 3, endUs: 4 },
};
const block = (address: number, size: number, requestedBytes: number | null) => ({
  ...{ address, size, requestedBytes, allocatedBytes: requestedBytes === null ? 0 : size },
});
const record: t.MemoryRecord = {
  ...{ result: undefined, device: 'cuda:1', startedAtMs: 1000, durationUs: 9, reservedBytesBefore: 0 },
  allocations: [held, output, workspace],
  events: [
    { action: 'reserve', timeUs: 1, phase: null, address: 0, bytes: 2 ** 21, stack: calls },
    { action: 'allocate', timeUs: 2.4, phase: 'forward', allocation: output },
    { action: 'allocate', timeUs: 3, phase: null, allocation: workspace },
    { action: 'enter', timeUs: 3.5, phase: 'backward' },
    { action: 'free', timeUs: 4, phase: null, allocation: workspace },
    { action: 'release', timeUs: 5, phase: null, address: 2 ** 22, bytes: 2 ** 22, stack: [] },
  ],
  segments: [
    {
      ...{ address: 0, bytes: 2 ** 21 },
      blocks: [block(0, 512, 100), block(512, 1024, 1000), block(1536, 2 ** 21 - 1536, null)],
    },
    { address: 2 ** 23, bytes: 2 ** 21 + 1, blocks: [block(2 ** 23, 2 ** 21 + 1, null)] },
  ],
};

const frame = (name: string) => ({ name, filename: 'roofline', line: 0 });
const train = { name: 'train', filename: 'train.ts', line: 7 };
const outputFrames = [frame('exp'), frame('range forward > layer'), train];
const workspaceFrames = [frame('matmul (workspace)'), train];
const at = (timeUs: number) => ({ stream: 0, time_us: 1_000_000 + timeUs });
const ofWorkspace = { addr: 1536, size: 8, frames: workspaceFrames };

it.skipIf(!hasPython)('holds the trace and the segments of a record, in the names of PyTorch', () => {
  const inactive = { requested_size: 0, state: 'inactive', frames: [] };
  const segment = { device: 1, stream: 0, segment_pool_id: [0, 0], is_expandable: false, frames: [] };
  expect(readByPython(t.memorySnapshot(record))).toEqual({
    segments: [
      {
        ...{ ...segment, address: 0, total_size: 2 ** 21, segment_type: 'small' },
        ...{ allocated_size: 1536, active_size: 1536, requested_size: 1100 },
        blocks: [
          { address: 0, size: 512, requested_size: 100, state: 'active_allocated', frames: [] },
          { address: 512, size: 1024, requested_size: 1000, state: 'active_allocated', frames: outputFrames },
          { address: 1536, size: 2 ** 21 - 1536, ...inactive },
        ],
      },
      {
        ...{ ...segment, address: 2 ** 23, total_size: 2 ** 21 + 1, segment_type: 'large' },
        ...{ allocated_size: 0, active_size: 0, requested_size: 0 },
        blocks: [{ address: 2 ** 23, size: 2 ** 21 + 1, ...inactive }],
      },
    ],
    device_traces: [
      [],
      [
        { action: 'segment_alloc', addr: 0, size: 2 ** 21, frames: [train], ...at(1) },
        { action: 'alloc', addr: 512, size: 1000, frames: outputFrames, ...at(2) },
        { action: 'alloc', ...ofWorkspace, ...at(3) },
        { action: 'free_requested', ...ofWorkspace, ...at(4) },
        { action: 'free_completed', ...ofWorkspace, ...at(4) },
        { action: 'segment_free', addr: 2 ** 22, size: 2 ** 22, frames: [], ...at(5) },
      ],
    ],
    allocator_settings: {},
    external_annotations: [],
  });
});

it('of the CPU is the first device, and of a tensor that no op made says so', () => {
  const only = { ...output, op: null, range: [] };
  const text = Buffer.from(
    t.memorySnapshot({
      ...{ ...record, device: 'cpu', allocations: [only] },
      events: [{ action: 'allocate', timeUs: 2, phase: null, allocation: only }],
    }),
  ).toString('latin1');
  expect(text).toContain('tensor');
  expect(text).not.toContain('range ');
});

it('holds calls that many allocations share once', () => {
  const many = Array.from({ length: 50 }, (_, i) => ({ ...output, address: 512 * i }));
  const events = many.map((allocation) => ({
    ...{ action: 'allocate' as const, timeUs: 2, phase: null, allocation },
  }));
  const text = Buffer.from(t.memorySnapshot({ ...record, allocations: many, events, segments: [] }));
  expect(text.toString('latin1').split('train.ts').length - 1).toBe(1);
});
