import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import type { DType, Tensor } from '../../src/index.ts';

const device = () => t.device('cuda');

/** Median milliseconds of `run` on the device. */
function timeMs(run: () => void): number {
  for (let i = 0; i < 3; i++) run();
  const times = Array.from({ length: 9 }, () => {
    const start = device().recordEvent();
    run();
    return device().recordEvent().elapsedMs(start);
  });
  return times.sort((a, b) => a - b)[4]!;
}

const elements = 2 ** 28;
const make = (shape: number[], dtype: DType = 'float32') => t.full(shape, 1, { device: device(), dtype });

/** An op on large tensors, and the bytes that it must move. */
interface Case {
  readonly name: string;
  readonly inputs: () => Tensor[];
  readonly run: (inputs: Tensor[]) => Tensor;
  readonly bytes: number;
}

const square = Math.sqrt(elements);
const cases: readonly Case[] = [
  { name: 'copy', inputs: () => [make([elements])], run: ([x]) => t.copy(x!), bytes: 8 * elements },
  {
    name: 'add',
    inputs: () => [make([elements]), make([elements])],
    run: ([x, y]) => t.add(x!, y!),
    bytes: 12 * elements,
  },
  {
    name: 'add bfloat16',
    inputs: () => [make([elements], 'bfloat16'), make([elements], 'bfloat16')],
    run: ([x, y]) => t.add(x!, y!),
    bytes: 6 * elements,
  },
  {
    name: 'cast float32 to bfloat16',
    inputs: () => [make([elements])],
    run: ([x]) => t.cast(x!, 'bfloat16'),
    bytes: 6 * elements,
  },
  {
    name: 'cast bfloat16 to float32',
    inputs: () => [make([elements], 'bfloat16')],
    run: ([x]) => t.cast(x!, 'float32'),
    bytes: 6 * elements,
  },
  { name: 'silu', inputs: () => [make([elements])], run: ([x]) => t.silu(x!), bytes: 8 * elements },
  {
    name: 'mul by a row',
    inputs: () => [make([square, square]), make([square])],
    run: ([x, y]) => t.mul(x!, y!),
    bytes: 8 * elements,
  },
  {
    name: 'heads moved forward',
    inputs: () => [make([64, elements / 64 / 32 / 128, 32, 128])],
    run: ([x]) => t.contiguous(t.transpose(x!, 1, 2)),
    bytes: 8 * elements,
  },
  { name: 'sum of all', inputs: () => [make([elements])], run: ([x]) => t.sum(x!), bytes: 4 * elements },
  {
    name: 'sum of rows',
    inputs: () => [make([square, square])],
    run: ([x]) => t.sum(x!, { dims: 1 }),
    bytes: 4 * elements,
  },
  {
    name: 'sum of short rows',
    inputs: () => [make([elements / 256, 256])],
    run: ([x]) => t.sum(x!, { dims: 1 }),
    bytes: 4 * elements,
  },
  {
    name: 'sum of columns',
    inputs: () => [make([square, square])],
    run: ([x]) => t.sum(x!, { dims: 0 }),
    bytes: 4 * elements,
  },
  {
    name: 'sum of columns, bfloat16',
    inputs: () => [make([square, square], 'bfloat16')],
    run: ([x]) => t.sum(x!, { dims: 0 }),
    bytes: 2 * elements,
  },
];

describe('bandwidth of 2^28 elements', () => {
  it.each(cases)('$name', ({ name, inputs, run, bytes }) => {
    t.scope(() => {
      const tensors = inputs();
      const ms = timeMs(() => run(tensors).dispose());
      const terabytesPerSecond = bytes / ms / 1e9;
      console.log(`${name.padEnd(26)} ${ms.toFixed(3).padStart(8)} ms ${terabytesPerSecond.toFixed(2)} TB/s`);
      expect(terabytesPerSecond).toBeGreaterThan(0);
    });
  });
});
