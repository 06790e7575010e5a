import {
  add,
  copyInPlace,
  device as openDevice,
  full,
  matmul,
  randn,
  scope,
  transpose,
  type Device,
  type Tensor,
} from '@roofline/tensor-core';
import type { CellTask } from '../runner/cell-task.ts';
import type { BenchmarkDType, Ceilings } from '../measuring/ceilings.ts';
import { countSteps } from '../measuring/step-runner.ts';

/** Sizes of the square matrices. */
const MATRIX_SIZES = { cuda: [4096, 8192, 12288], cpu: [1024, 2048] } as const;
/** Bytes of a tensor that is copied: so large that no cache holds it. */
const COPY_BYTES = { cuda: [2 ** 31, 2 ** 29], cpu: [2 ** 27, 2 ** 26] } as const;
const ATTEMPTS = { cuda: 10, cpu: 4 } as const;

/** How the second operand of a product is laid out in memory: libraries have different kernels for each. */
const LAYOUTS: readonly ((b: Tensor) => Tensor)[] = [(b) => b, transpose];
/** Each reads every byte of `source` and writes as many. */
const COPIES: readonly ((source: Tensor, target: Tensor) => unknown)[] = [
  (source) => add(source, 1),
  (source, target) => copyInPlace(target, source),
];

export type CeilingsJob = { dtypes: BenchmarkDType[] };

/** The best of several sizes and ways, and how far apart its runs are. */
interface Best {
  readonly perSecond: number;
  readonly spread: number;
}

/** The best that the device reaches in large matrix products and in copies, each of several sizes and ways. */
export const measureCeilings: CellTask<CeilingsJob, Record<string, never>, Ceilings> = {
  name: 'measure-ceilings',
  measure({ dtypes }, { deviceLabel, progress }) {
    const device = openDevice(deviceLabel as `cuda:${number}`);
    const steps = dtypes.length * MATRIX_SIZES[device.type].length + COPY_BYTES[device.type].length;
    const sizeDone = countSteps(progress, { warmup: 0, steps, name: 'sizes' });
    const products = dtypes.map((dtype) => [dtype, bestProduct(device, dtype, sizeDone)] as const);
    const copy = bestCopy(device, sizeDone);
    const ofProducts = (pick: (best: Best) => number) =>
      Object.fromEntries(products.map(([dtype, best]) => [dtype, pick(best)]));
    return {
      matmulFlopsPerSecond: ofProducts(({ perSecond }) => perSecond),
      copyBytesPerSecond: copy.perSecond,
      spread: { matmulFlopsPerSecond: ofProducts(({ spread }) => spread), copyBytesPerSecond: copy.spread },
    };
  },
};

function bestProduct(device: Device, dtype: BenchmarkDType, sizeDone: () => void): Best {
  const tried = MATRIX_SIZES[device.type].flatMap((size) => {
    const rates = scope(() => {
      const [a, b] = [1, 2].map((seed) => randn([size, size], { seed, dtype, device })) as [Tensor, Tensor];
      return LAYOUTS.map((layout) => {
        const second = layout(b);
        return rateOf(device, 2 * size ** 3, () => void matmul(a, second));
      });
    });
    sizeDone();
    return rates;
  });
  return bestOf(tried);
}

function bestCopy(device: Device, sizeDone: () => void): Best {
  const most = device.memoryStatistics().freeBytes / 4;
  const tried = COPY_BYTES[device.type].flatMap((size) => {
    const rates = scope(() => {
      const length = Math.floor(Math.min(size, most) / 4);
      const [source, target] = [1, 0].map((value) => full([length], value, { dtype: 'float32', device })) as [
        Tensor,
        Tensor,
      ];
      return COPIES.map((copy) => rateOf(device, 2 * source.byteLength, () => void copy(source, target)));
    });
    sizeDone();
    return rates;
  });
  return bestOf(tried);
}

function bestOf(tried: readonly Best[]): Best {
  return tried.reduce((best, each) => (each.perSecond > best.perSecond ? each : best));
}

/**
 * The work over the shortest of several runs, after one to warm up: a ceiling is what the device can do. The spread is
 * by how much the median run falls short of it.
 */
function rateOf(device: Device, work: number, run: () => void): Best {
  const scoped = () => scope(run);
  scoped();
  const seconds = Array.from({ length: ATTEMPTS[device.type] }, () => {
    device.synchronize();
    const start = device.recordEvent();
    scoped();
    const end = device.recordEvent();
    device.synchronize();
    return end.elapsedMs(start) / 1000;
  }).sort((a, b) => a - b);
  const [shortest, median] = [seconds[0]!, seconds[Math.floor(seconds.length / 2)]!];
  return { perSecond: work / shortest, spread: 1 - shortest / median };
}
