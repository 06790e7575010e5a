import { beforeEach, describe, expect, it, vi } from 'vitest';
import { measureOp } from '../../../src/benchmarks/overhead/measure-op.ts';
import { FakeDevice } from '../../fixtures/fake-device.ts';

const mocks = vi.hoisted(() => ({ device: vi.fn(), add: vi.fn(), measureFirstOp: vi.fn() }));
vi.mock('@roofline/tensor-core', () => ({ device: mocks.device }));
vi.mock('../../../src/benchmarks/overhead/eager-ops.ts', () => ({ eagerOps: { add: mocks.add } }));
vi.mock('../../../src/benchmarks/overhead/first-op.ts', () => ({ measureFirstOp: mocks.measureFirstOp }));

let device: FakeDevice;
let calls: number;
const progress = vi.fn();

function setUp(type: 'cpu' | 'cuda'): void {
  device = new FakeDevice(type);
  calls = 0;
  mocks.device.mockImplementation(() => device);
  // The nth call takes the host n µs, and the device 240 ms: its queue takes four of them, and no fifth.
  mocks.add.mockImplementation((on: FakeDevice) => () => on.run(240, ++calls / 1000));
  mocks.measureFirstOp.mockImplementation(async () => ({ coldMs: 900, warmMs: 300 }));
}

const context = (deviceLabel: string) => ({
  settings: { calls: 4, repeats: 3, warmup: 9, seed: 0 },
  deviceLabel,
  progress,
});

describe('measureOp', () => {
  beforeEach(() => vi.clearAllMocks());

  it('gives host microseconds of a call: 4 calls warm up, then 3 repeats of 4, none waiting for the device', async () => {
    setUp('cuda');
    const { hostUs } = await measureOp({ op: 'add' }, context('cuda:1'));
    expect(calls).toBe(16);
    const means = [(5 + 6 + 7 + 8) / 4, (9 + 10 + 11 + 12) / 4, (13 + 14 + 15 + 16) / 4];
    expect(hostUs).toEqual(means.map((us) => expect.closeTo(us, 6)));
    expect(device.isIdle).toBe(true);
    expect(mocks.device).toHaveBeenCalledWith('cuda:1');
    expect(mocks.add).toHaveBeenCalledWith(device);
    expect(progress.mock.calls).toEqual([
      [1, 3, 'repeats'],
      [2, 3, 'repeats'],
      [3, 3, 'repeats'],
    ]);
  });

  it('times the first op only on a GPU: a CPU compiles no kernels', async () => {
    setUp('cuda');
    expect((await measureOp({ op: 'add' }, context('cuda:1'))).firstOp).toEqual({ coldMs: 900, warmMs: 300 });
    expect(mocks.measureFirstOp).toHaveBeenCalledWith('add', 'cuda:1');
    mocks.measureFirstOp.mockClear();
    setUp('cpu');
    expect((await measureOp({ op: 'add' }, context('cpu'))).firstOp).toBeNull();
    expect(mocks.measureFirstOp).not.toHaveBeenCalled();
  });
});
