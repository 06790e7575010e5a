import { beforeEach, describe, expect, it, vi } from 'vitest';
import { measureCeilings } from '../../src/device/measure-ceilings.ts';
import type { BenchmarkDType } from '../../src/measuring/ceilings.ts';
import { FakeDevice } from '../fixtures/fake-device.ts';

const core = vi.hoisted(() => ({
  device: vi.fn(),
  scope: vi.fn(),
  randn: vi.fn(),
  full: vi.fn(),
  matmul: vi.fn(),
  add: vi.fn(),
}));
vi.mock('@roofline/tensor-core', () => core);

interface FakeTensor {
  readonly shape: readonly number[];
  readonly dtype: BenchmarkDType;
  readonly byteLength: number;
}

/** What the device does of each dtype in a second, in products of 8192 rows; in others it is slower. */
const FLOPS = { float32: 5e13, bfloat16: 8e14, float16: 7e14 };
const BYTES = 4e12;

let device: FakeDevice;
let products: string[];
let copies: number;
let scopeDepth: number;

/** The first run of each work is slow, and the third the fastest. */
function attemptFactor(run: number): number {
  return [7, 2, 1][run] ?? 1.5;
}

function setUp(type: 'cpu' | 'cuda'): void {
  device = new FakeDevice(type);
  products = [];
  copies = scopeDepth = 0;
  const tensor = (shape: readonly number[], { dtype }: { dtype: BenchmarkDType }): FakeTensor => ({
    shape,
    dtype,
    byteLength: shape.reduce((a, b) => a * b, 1) * (dtype === 'float32' ? 4 : 2),
  });
  core.device.mockImplementation(() => device);
  core.scope.mockImplementation((fn: () => unknown) => {
    scopeDepth += 1;
    const result = fn();
    scopeDepth -= 1;
    return result;
  });
  core.randn.mockImplementation(tensor);
  core.full.mockImplementation((shape, _value, options) => tensor(shape, options));
  core.matmul.mockImplementation((a: FakeTensor, b: FakeTensor) => {
    expect(scopeDepth).toBe(2);
    expect([a.shape[1], a.dtype]).toEqual([b.shape[0], b.dtype]);
    const [m, k, n] = [a.shape[0]!, a.shape[1]!, b.shape[1]!];
    const work = `${m} ${a.dtype}`;
    const slower = attemptFactor(products.filter((each) => each === work).length) * (m === 8192 ? 1 : 1.25);
    products.push(work);
    // A multiplication and an addition for each element and each of the summed dimension.
    device.run(((2 * m * k * n) / FLOPS[a.dtype]) * 1000 * slower);
  });
  core.add.mockImplementation((source: FakeTensor) => {
    expect(scopeDepth).toBe(2);
    // Each byte is read, and one written.
    device.run(((source.byteLength + source.byteLength) / BYTES) * 1000 * attemptFactor(copies++));
  });
}

const context = { settings: {}, deviceLabel: 'cuda:0', progress: () => {} };
const shapesOf = (mock: typeof core.full) => mock.mock.calls.map(([shape]) => shape);

describe('measureCeilings', () => {
  beforeEach(() => vi.clearAllMocks());

  it('takes the best of FLOPs and of bytes a second: their least time in the best size', async () => {
    setUp('cuda');
    const ceilings = await measureCeilings.measure({ dtypes: ['float32', 'bfloat16'] }, context);
    expect(Object.keys(ceilings.matmulFlopsPerSecond)).toEqual(['float32', 'bfloat16']);
    expect(ceilings.matmulFlopsPerSecond.float32! / FLOPS.float32).toBeCloseTo(1, 9);
    expect(ceilings.matmulFlopsPerSecond.bfloat16! / FLOPS.bfloat16).toBeCloseTo(1, 9);
    expect(ceilings.copyBytesPerSecond / BYTES).toBeCloseTo(1, 9);
    expect(core.device).toHaveBeenCalledWith('cuda:0');
  });

  it('tries large matrices ten times after one to warm up, and a copy of 2 GiB', async () => {
    setUp('cuda');
    await measureCeilings.measure({ dtypes: ['float16'] }, context);
    expect([...Map.groupBy(products, (each) => each)].map(([work, runs]) => [work, runs.length])).toEqual([
      ['4096 float16', 11],
      ['8192 float16', 11],
      ['12288 float16', 11],
    ]);
    expect(core.randn.mock.calls.slice(0, 2)).toEqual([
      [[4096, 4096], { seed: 1, dtype: 'float16', device }],
      [[4096, 4096], { seed: 2, dtype: 'float16', device }],
    ]);
    expect(shapesOf(core.full)).toEqual([[2 ** 31 / 4]]);
    expect(core.full.mock.calls[0]!.slice(1)).toEqual([1, { dtype: 'float32', device }]);
    expect(core.add).toHaveBeenCalledWith(expect.objectContaining({ dtype: 'float32' }), 1);
    expect(copies).toBe(11);
  });

  it('copies a quarter of what is free where that is less', async () => {
    setUp('cuda');
    device.memory.freeBytes = 2 ** 30 + 8;
    await measureCeilings.measure({ dtypes: [] }, context);
    // An odd number of bytes makes no part of an element.
    expect(shapesOf(core.full)).toEqual([[2 ** 26]]);
  });

  it('takes less of a CPU', async () => {
    setUp('cpu');
    await measureCeilings.measure({ dtypes: ['float32'] }, { ...context, deviceLabel: 'cpu' });
    expect([...new Set(products)]).toEqual(['1024 float32', '2048 float32']);
    expect(products).toHaveLength(2 * 5);
    expect(shapesOf(core.full)).toEqual([[2 ** 27 / 4]]);
    expect(copies).toBe(5);
  });

  it('times each run from an idle device, whatever was queued before', async () => {
    setUp('cuda');
    const { matmul } = core;
    const queued = matmul.getMockImplementation()!;
    const idle: boolean[] = [];
    matmul.mockImplementation((...operands: unknown[]) => {
      idle.push(device.isIdle);
      return queued(...operands);
    });
    await measureCeilings.measure({ dtypes: ['float32'] }, context);
    // The first of each size warms up, and the next one waits for it.
    expect(idle.every(Boolean)).toBe(true);
    expect(device.isIdle).toBe(true);
  });

  it('is the task of its name', () => expect(measureCeilings.name).toBe('measure-ceilings'));
});
