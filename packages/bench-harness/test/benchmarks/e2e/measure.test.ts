import { beforeEach, describe, expect, it, vi } from 'vitest';
import { measureE2e } from '../../../src/benchmarks/e2e/measure.ts';
import type { E2eCell } from '../../../src/benchmarks/e2e/parameters.ts';
import type { Phase } from '../../../src/measuring/timing.ts';
import { PeerError } from '../../../src/peer/python-peer.ts';
import { FakeDevice } from '../../fixtures/fake-device.ts';
import { toyCell } from '../../fixtures/records.ts';

const mocks = vi.hoisted(() => ({
  device: vi.fn(),
  createWorkload: vi.fn(),
  startPeer: vi.fn(),
  prepareCell: vi.fn(),
}));
vi.mock('@roofline/tensor-core', () => ({ device: mocks.device }));
vi.mock('../../../src/benchmarks/e2e/workload.ts', () => ({ createWorkload: mocks.createWorkload }));
vi.mock('../../../src/peer/cell-peer.ts', async (original) => ({
  ...(await original<typeof import('../../../src/peer/cell-peer.ts')>()),
  startPeer: mocks.startPeer,
  prepareCell: mocks.prepareCell,
}));

const torch = { name: 'torch' as const, version: '2.0' };
const work = { forward: { flops: 5, bytes: 7 } };
const progress = vi.fn();
let device: FakeDevice;
let loss: number | null;
/** What ran, in turn. */
let log: string[];

beforeEach(() => {
  vi.clearAllMocks();
  device = new FakeDevice();
  mocks.device.mockReturnValue(device);
  log = [];
  loss = 4.5;
  let steps = 0;
  mocks.createWorkload.mockReturnValue({
    parameterCount: 2264,
    work,
    compile() {},
    compilation: null,
    loss: () => loss,
    dispose: () => void log.push('dispose'),
    step(phase: Phase) {
      steps += 1;
      log.push('ours');
      phase('forward', () => device.run(steps, 0.25));
      phase('backward', () => device.run(2 * steps));
      // The first step, which allocates what stays, has the highest peak.
      const peak = steps === 1 ? 9999 : 100 + steps;
      device.memory.peakAllocatedBytes = Math.max(device.memory.peakAllocatedBytes, peak);
      device.memory.peakReservedBytes = Math.max(device.memory.peakReservedBytes, 2 * peak);
    },
    eagerStep(phase: Phase) {
      log.push('eager');
      phase('forward', () => device.run(50));
      device.memory.peakAllocatedBytes = Math.max(device.memory.peakAllocatedBytes, 5000);
    },
  });
});

const measure = (warmup: number, steps: number, peer: typeof torch | null = null) =>
  measureE2e(toyCell, { settings: { warmup, steps, seed: 3, peer }, deviceLabel: 'cuda:2', progress });

describe('measureE2e', () => {
  it('keeps the steps after the warm-up, each with its phases', async () => {
    const result = await measure(2, 3);
    expect(result).toEqual({
      deviceMs: [9.25, 12.25, 15.25],
      wallMs: [9.375, 12.375, 15.375],
      phasesMs: { forward: [3.25, 4.25, 5.25], backward: [6, 8, 10] },
      parameterCount: 2264,
      work,
      // Of the steps that count alone.
      memory: { peakAllocatedBytes: 105, peakReservedBytes: 210 },
      loss: 4.5,
      compilation: null,
      eagerInTurn: null,
      peer: null,
    });
    expect(mocks.device).toHaveBeenCalledWith('cuda:2');
    expect(mocks.createWorkload).toHaveBeenCalledWith(toyCell, device, 3);
    expect(progress.mock.calls).toEqual([
      [1, 2, 'warm-up'],
      [2, 2, 'warm-up'],
      [1, 3, 'steps'],
      [2, 3, 'steps'],
      [3, 3, 'steps'],
    ]);
  });

  describe('where eager steps are swept too', () => {
    const compiled = { ...toyCell, execution: 'compiled' } as const;
    const inTurn = (cell: E2eCell, type: 'cpu' | 'cuda') => {
      device = new FakeDevice(type);
      mocks.device.mockReturnValue(device);
      const settings = { warmup: 1, steps: 7, seed: 3, peer: null, sweepsEager: true } as const;
      return measureE2e(cell, { settings, deviceLabel: 'cpu', progress });
    };

    it('times compiled steps on a CPU in turn with eager ones, whose memory does not count', async () => {
      const { deviceMs, eagerInTurn, memory } = await inTurn(compiled, 'cpu');
      const times = (name: string, count: number) => Array.from({ length: count }, () => name);
      expect(log).toEqual([
        ...['ours', 'eager', ...times('ours', 3), ...times('eager', 3)],
        ...[...times('ours', 4), ...times('eager', 4), 'dispose'],
      ]);
      expect(deviceMs).toHaveLength(7);
      expect(eagerInTurn!.deviceMs).toEqual(times('', 7).map(() => 50));
      expect(memory.peakAllocatedBytes).toBe(108);
      expect(progress.mock.calls.at(-1)).toEqual([14, 14, 'steps']);
    });

    it.each([
      [toyCell, 'cpu'],
      [compiled, 'cuda'],
    ] as const)('times eager steps, and those on a GPU, alone', async (cell, type) => {
      expect((await inTurn(cell, type)).eagerInTurn).toBeNull();
      expect(log).not.toContain('eager');
    });
  });

  it.each([
    [NaN, null],
    [Infinity, null],
    [null, null],
    [0, 0],
  ])('reports a loss of %s as %s', async (given, told) => {
    loss = given;
    expect((await measure(0, 1)).loss).toBe(told);
  });
});

describe('measureE2e with a peer', () => {
  function setUpPeer(failAt?: string) {
    const act = (name: string) => {
      log.push(name);
      if (name === failAt) throw new PeerError(`no ${name}`, 'OUT_OF_MEMORY');
    };
    let blocks = 0;
    const peer = {
      async run(count: number) {
        act(`theirs ${count}`);
        blocks += 1;
        const samples = Array.from({ length: count }, (_, index) => blocks + index / 10);
        return { deviceMs: samples, wallMs: samples.map((ms) => ms + 1), phasesMs: { forward: samples } };
      },
      async resetPeakMemory() {
        act('reset');
      },
      async memory() {
        act('memory');
        return { peakAllocatedBytes: 11, peakReservedBytes: 12 };
      },
      async close() {
        act('close');
      },
    };
    mocks.startPeer.mockImplementation(() => (act('start'), peer));
    mocks.prepareCell.mockImplementation(async () => {
      act('prepare');
      return { torch: '2.0', python: '3.12', device: 'Toy GPU' };
    });
  }

  it('runs both in turn after both have warmed up, ours a second time once the peer is there', async () => {
    setUpPeer();
    const { deviceMs, peer } = await measure(1, 7, torch);
    const ours = (count: number) => Array.from({ length: count }, () => 'ours');
    expect(log).toEqual([
      ...ours(1),
      ...['start', 'prepare', 'theirs 1', 'reset'],
      ...ours(1),
      ...ours(3),
      'theirs 3',
      ...ours(4),
      'theirs 4',
      'dispose',
      'memory',
      'close',
    ]);
    expect(deviceMs).toEqual([3, 4, 5, 6, 7, 8, 9].map((step) => 3 * step + 0.25));
    expect(peer).toEqual({
      status: 'ok',
      torch: '2.0',
      python: '3.12',
      device: 'Toy GPU',
      deviceMs: [2, 2.1, 2.2, 3, 3.1, 3.2, 3.3],
      wallMs: [3, 3.1, 3.2, 4, 4.1, 4.2, 4.3],
      phasesMs: { forward: [2, 2.1, 2.2, 3, 3.1, 3.2, 3.3] },
      peakAllocatedBytes: 11,
      peakReservedBytes: 12,
    });
    expect(mocks.startPeer).toHaveBeenCalledWith('torch', device);
    expect(progress.mock.calls.map(([done, total, message]) => `${done}/${total} ${message}`)).toEqual([
      '1/2 warm-up',
      '2/2 warm-up',
      ...[1, 2, 3, 4, 5, 6, 7].map((done) => `${done}/7 steps`),
    ]);
  });

  it('records steps of JAX back to back as well, and its last loss', async () => {
    setUpPeer();
    let blocks = 0;
    const run = async (count: number) => {
      blocks += 1;
      const samples = (ms: number) => Array.from({ length: count }, () => ms);
      const stepByStep = { deviceMs: samples(9), wallMs: samples(9), phasesMs: {} };
      return { ...stepByStep, backToBackMs: samples(blocks), loss: 4 / blocks };
    };
    const peerOfJax = { ...mocks.startPeer(), run };
    mocks.startPeer.mockImplementation((name) => (name === 'jax' ? peerOfJax : null));
    mocks.prepareCell.mockResolvedValue({ jax: '0.11', python: '3.12', device: 'Toy', attention: 'cudnn' });
    const cell: E2eCell = { ...toyCell, peerAttention: 'dot-product', peerExecution: 'jit' };
    const settings = { warmup: 1, steps: 3, seed: 3, peer: { name: 'jax' as const, version: '0.11' } };
    const { peer } = await measureE2e(cell, { settings, deviceLabel: 'cuda:2', progress });
    expect(peer).toEqual({
      ...{ status: 'ok', jax: '0.11', python: '3.12', device: 'Toy', attention: 'cudnn' },
      ...{ deviceMs: [9, 9, 9], wallMs: [9, 9, 9], phasesMs: {} },
      ...{ backToBackMs: [2, 3, 3], loss: 4 / 3, peakAllocatedBytes: 11, peakReservedBytes: 12 },
    });
    expect(mocks.prepareCell.mock.calls[0]!.slice(1)).toEqual([cell, expect.anything(), device]);
  });

  it('runs no warm-up for zero steps', async () => {
    setUpPeer();
    await measure(0, 2, torch);
    expect(log).toEqual([
      'start',
      'prepare',
      'reset',
      'ours',
      'theirs 1',
      'ours',
      'theirs 1',
      'dispose',
      'memory',
      'close',
    ]);
  });

  it.each(['prepare', 'theirs 1', 'memory'])(
    'keeps ours where the peer fails at %s, and asks it no more',
    async (at) => {
      setUpPeer(at);
      const { deviceMs, peer } = await measure(0, 2, torch);
      expect(deviceMs).toHaveLength(2);
      expect(peer).toEqual({
        status: 'out-of-memory',
        error: { name: 'PeerError', message: `no ${at}`, code: 'OUT_OF_MEMORY' },
      });
      const ours = ['ours', 'dispose'];
      expect(log.slice(log.indexOf(at) + 1).filter((each) => !ours.includes(each))).toEqual(['close']);
    },
  );

  it('runs after ours, which is freed, where both do not fit on the GPU', async () => {
    setUpPeer();
    device.memoryMiB = 0.03;
    const { deviceMs, peer, peerApart } = await measure(1, 2, torch);
    expect(log).toEqual([
      ...['ours', 'ours', 'ours', 'dispose', 'start', 'prepare', 'theirs 1', 'reset'],
      ...['theirs 1', 'theirs 1', 'memory', 'close'],
    ]);
    expect([deviceMs.length, peer!.status, peerApart]).toEqual([2, 'ok', true]);
  });

  it("does not hide our own failure behind the peer's", async () => {
    setUpPeer();
    mocks.prepareCell.mockRejectedValue(new TypeError('a fault'));
    await expect(measure(0, 2, torch)).rejects.toThrow('a fault');
  });
});
