import { add, device as openDevice, full, matmul, randn, scope, type Device } from '@roofline/tensor-core';
import type { CellTask } from '../benchmarks/definition.ts';
import type { BenchmarkDType, Ceilings } from '../measuring/ceilings.ts';

/** Sizes of the square matrices; the best of them is the ceiling. */
const MATRIX_SIZES = { cuda: [4096, 8192, 12288], cpu: [1024, 2048] } as const;
/** Large enough that no cache holds it. */
const COPY_BYTES = { cuda: 2 ** 31, cpu: 2 ** 27 } as const;
const ATTEMPTS = { cuda: 10, cpu: 4 } as const;

export type CeilingsJob = { dtypes: BenchmarkDType[] };

/** The best that the device reaches in large matrix products and in a large pointwise op. */
export const measureCeilings: CellTask<CeilingsJob, Record<string, never>, Ceilings> = {
  name: 'measure-ceilings',
  measure({ dtypes }, { deviceLabel }) {
    const device = openDevice(deviceLabel as `cuda:${number}`);
    const matmulFlopsPerSecond = Object.fromEntries(
      dtypes.map((dtype) => [dtype, bestMatmul(device, dtype)]),
    );
    return { matmulFlopsPerSecond, copyBytesPerSecond: bestCopy(device) };
  },
};

function bestMatmul(device: Device, dtype: BenchmarkDType): number {
  const rates = MATRIX_SIZES[device.type].map((size) =>
    scope(() => {
      const [a, b] = [1, 2].map((seed) => randn([size, size], { seed, dtype, device }));
      return (2 * size ** 3) / bestSeconds(device, () => scope(() => void matmul(a!, b!)));
    }),
  );
  return Math.max(...rates);
}

/** Reads and writes each element once. */
function bestCopy(device: Device): number {
  const byteLength = Math.min(COPY_BYTES[device.type], device.memoryStatistics().freeBytes / 4);
  return scope(() => {
    const source = full([Math.floor(byteLength / 4)], 1, { dtype: 'float32', device });
    return (2 * source.byteLength) / bestSeconds(device, () => scope(() => void add(source, 1)));
  });
}

/** The shortest of several runs after one to warm up: a ceiling is what the device can do. */
function bestSeconds(device: Device, run: () => void): number {
  run();
  const seconds = Array.from({ length: ATTEMPTS[device.type] }, () => {
    device.synchronize();
    const start = device.recordEvent();
    run();
    const end = device.recordEvent();
    device.synchronize();
    return end.elapsedMs(start) / 1000;
  });
  return Math.min(...seconds);
}
