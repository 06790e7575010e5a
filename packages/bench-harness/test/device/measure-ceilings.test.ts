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
  copyInPlace: vi.fn(),
  transpose: vi.fn(),
}));
vi.mock('@roofline/tensor-core', () => core);

interface FakeTensor {
  readonly shape: readonly number[];
  readonly dtype: BenchmarkDType;
  readonly byteLength: number;
  readonly isTransposed?: boolean;
}

/** What the device does of each dtype in a second, in products of 8192 rows; in others it is slower. */
const FLOPS = { float32: 5e13, bfloat16: 8e14, float16: 7e14 };
const BYTES = 4e12;

let device: FakeDevice;
let products: string[];
let copies: string[];
let scopeDepth: number;

/** The first run of each work is slow, and the third the fastest. */
function attemptFactor(run: number): number {
  return [7, 2, 1][run] ?? 1.5;
}

function setUp(type: 'cpu' | 'cuda'): void {
  device = new FakeDevice(type);
  products = [];
  copies = [];
  scopeDepth = 0;
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
  core.transpose.mockImplementation((x: FakeTensor) => ({ ...x, isTransposed: true }));
  core.full.mockImplementation((shape, _value, options) => tensor(shape, options));
  core.matmul.mockImplementation((a: FakeTensor, b: FakeTensor) => {
    expect(scopeDepth).toBe(2);
    expect([a.shape[1], a.dtype]).toEqual([b.shape[0], b.dtype]);
    const [m, k, n] = [a.shape[0]!, a.shape[1]!, b.shape[1]!];
    const work = `${m} ${a.dtype}${b.isTransposed ? ' transposed' : ''}`;
    const run = products.filter((each) => each === work).length;
    const slower = attemptFactor(run) * (m === 8192 ? 1 : 1.25) * (b.isTransposed ? 1 : 1.1);
    products.push(work);
    // A multiplication and an addition for each element and each of the summed dimension.
    device.run(((2 * m * k * n) / FLOPS[a.dtype]) * 1000 * slower);
  });
  const copy = (way: string, bytes: number, slower: number) => {
    expect(scopeDepth).toBe(2);
    const work = `${way} ${bytes}`;
    const run = copies.filter((each) => each === work).length;
    copies.push(work);
    // Each byte is read, and one written.
    device.run(((bytes + bytes) / BYTES) * 1000 * slower * attemptFactor(run));
  };
  core.add.mockImplementation(({ byteLength }: FakeTensor) => copy('add', byteLength, 1.3));
  core.copyInPlace.mockImplementation((target: FakeTensor, source: FakeTensor) => {
    expect(target.byteLength).toBe(source.byteLength);
    copy('copy', source.byteLength, 1);
  });
}

const context = { settings: {}, deviceLabel: 'cuda:0', progress: () => {} };
const shapesOf = (mock: typeof core.full) => mock.mock.calls.map(([shape]) => shape);

describe('measureCeilings', () => {
  beforeEach(() => vi.clearAllMocks());

  it('takes the best of FLOPs and of bytes a second: their least time in the best size and way', async () => {
    setUp('cuda');
    const ceilings = await measureCeilings.measure({ dtypes: ['float32', 'bfloat16'] }, context);
    expect(Object.keys(ceilings.matmulFlopsPerSecond)).toEqual(['float32', 'bfloat16']);
    expect(ceilings.matmulFlopsPerSecond.float32! / FLOPS.float32).toBeCloseTo(1, 9);
    expect(ceilings.matmulFlopsPerSecond.bfloat16! / FLOPS.bfloat16).toBeCloseTo(1, 9);
    expect(ceilings.copyBytesPerSecond / BYTES).toBeCloseTo(1, 9);
    expect(core.device).toHaveBeenCalledWith('cuda:0');
  });

  it('keeps by how much the median run falls short of the best', async () => {
    setUp('cuda');
    const { spread } = await measureCeilings.measure({ dtypes: ['float32'] }, context);
    // Of ten runs one takes twice the best, eight half as long again.
    expect(spread!.matmulFlopsPerSecond.float32).toBeCloseTo(1 - 1 / 1.5, 9);
    expect(spread!.copyBytesPerSecond).toBeCloseTo(1 - 1 / 1.5, 9);
  });

  it('tries large matrices ten times after one to warm up, and copies of 2 GiB and less', async () => {
    setUp('cuda');
    await measureCeilings.measure({ dtypes: ['float16'] }, context);
    expect([...Map.groupBy(products, (each) => each)].map(([work, runs]) => [work, runs.length])).toEqual([
      ['4096 float16', 11],
      ['4096 float16 transposed', 11],
      ['8192 float16', 11],
      ['8192 float16 transposed', 11],
      ['12288 float16', 11],
      ['12288 float16 transposed', 11],
    ]);
    expect(core.randn.mock.calls.slice(0, 2)).toEqual([
      [[4096, 4096], { seed: 1, dtype: 'float16', device }],
      [[4096, 4096], { seed: 2, dtype: 'float16', device }],
    ]);
    expect(shapesOf(core.full)).toEqual([[2 ** 29], [2 ** 29], [2 ** 27], [2 ** 27]]);
    expect(core.full.mock.calls[0]!.slice(1)).toEqual([1, { dtype: 'float32', device }]);
    expect(core.add).toHaveBeenCalledWith(expect.objectContaining({ dtype: 'float32' }), 1);
    expect([...Map.groupBy(copies, (each) => each)].map(([work, runs]) => [work, runs.length])).toEqual([
      [`add ${2 ** 31}`, 11],
      [`copy ${2 ** 31}`, 11],
      [`add ${2 ** 29}`, 11],
      [`copy ${2 ** 29}`, 11],
    ]);
  });

  it('copies a quarter of what is free where that is less', async () => {
    setUp('cuda');
    device.memory.freeBytes = 2 ** 30 + 8;
    await measureCeilings.measure({ dtypes: [] }, context);
    // An odd number of bytes makes no part of an element.
    expect(shapesOf(core.full)).toEqual([[2 ** 26], [2 ** 26], [2 ** 26], [2 ** 26]]);
  });

  it('takes less of a CPU', async () => {
    setUp('cpu');
    await measureCeilings.measure({ dtypes: ['float32'] }, { ...context, deviceLabel: 'cpu' });
    expect([...new Set(products)]).toEqual([
      '1024 float32',
      '1024 float32 transposed',
      '2048 float32',
      '2048 float32 transposed',
    ]);
    expect(products).toHaveLength(4 * 5);
    expect(shapesOf(core.full)).toEqual([[2 ** 25], [2 ** 25], [2 ** 24], [2 ** 24]]);
    expect(copies).toHaveLength(4 * 5);
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
