import type { KernelSpec, MemoryView } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { MultiTensorKernel, launchOverTensors, launchUpdate } from '../../src/multi-tensor/multi-tensor.ts';

interface Launch {
  readonly grid: readonly number[];
  /** The table's bytes, as 64-bit and 32-bit numbers. */
  readonly words64: BigUint64Array;
  readonly words32: Int32Array;
  readonly rest: readonly unknown[];
}

/** Tensors of so many elements, far above 4 GiB. */
function tensorsOf(...sizes: readonly number[]): MemoryView[] {
  return sizes.map((size, i) => ({
    ...{ dtype: 'float32', shape: [size], strides: [1], offset: 0, isContiguous: true },
    ...{ size, byteLength: 4 * size, address: 2 ** 40 + 16 * i },
    storage: { byteLength: 4 * size, buffer: { byteLength: 4 * size, address: 2 ** 40 + 16 * i } },
  }));
}

/** Records launches. */
function recorder() {
  const launches: Launch[] = [];
  const kernel = {
    name: 'recorded',
    launch(grid: readonly number[], _: number, __: number, values: readonly (number | Uint8Array)[]) {
      const slots = values.filter((value): value is Uint8Array => value instanceof Uint8Array);
      const bytes = Uint8Array.from(slots.flatMap((slot) => [...slot])).buffer;
      const rest = values.slice(slots.length);
      launches.push({ grid, words64: new BigUint64Array(bytes), words32: new Int32Array(bytes), rest });
    },
  };
  const specs: KernelSpec[] = [];
  const context = { kernel: (spec: KernelSpec) => (specs.push(spec), kernel) } as unknown as Parameters<
    typeof launchOverTensors
  >[0];
  return { context, launches, specs };
}

describe('launchOverTensors', () => {
  it('writes addresses, sizes and first blocks where the kernel reads them', () => {
    const tensors = tensorsOf(4096, 4097, 0, 1, 4096, 4097, 0, 1);
    const { context, launches } = recorder();
    const kernel = new MultiTensorKernel('sgd', { learningRate: 'float32', weightDecay: 'float32' });
    const lists = [tensors.slice(0, 4), tensors.slice(4)];
    launchOverTensors(context, kernel, lists, () => ({ learningRate: 0.5, weightDecay: 0.25 }));
    expect(launches).toHaveLength(1);
    const [{ grid, words64, words32, rest }] = launches as [Launch];
    expect(grid).toEqual([4, 1, 1]);
    expect(rest).toEqual([0.5, 0.25]);
    const address = (i: number) => 2n ** 40n + 16n * BigInt(i);
    expect(Array.from(words64.slice(0, 5))).toEqual([address(0), address(1), address(2), address(3), 0n]);
    expect(Array.from(words64.slice(88, 92))).toEqual([address(4), address(5), address(6), address(7)]);
    expect(Array.from(words64.slice(176, 180))).toEqual([4096n, 4097n, 0n, 1n]);
    expect(Array.from(words32.slice(528, 533))).toEqual([0, 1, 3, 3, 0x7fffffff]);
  });

  it('takes 88 tensors a launch, and counts on', () => {
    const tensors = tensorsOf(...Array<number>(200).fill(1));
    const { context, launches } = recorder();
    const kernel = new MultiTensorKernel('clip', { before: 'int32' });
    launchOverTensors(context, kernel, [tensors], (before) => ({ before }));
    expect(launches.map(({ grid, rest }) => [grid[0], rest[0]])).toEqual([
      [88, 0],
      [88, 88],
      [24, 176],
    ]);
  });

  it.each([4, 5])('stays within the 4 KB that parameters may take, with %i lists', (count) => {
    const lists = Array.from({ length: count }, () => tensorsOf(...Array<number>(88).fill(1)));
    const { context, launches } = recorder();
    launchOverTensors(context, new MultiTensorKernel('adamw', {}), lists, () => ({}));
    expect(launches[0]!.words32.byteLength + 8 * 8).toBeLessThanOrEqual(4096);
  });

  it('of an update writes copies as one list more, of null where a tensor has none', () => {
    const lists = Array.from({ length: 4 }, () => tensorsOf(...Array<number>(100).fill(1)));
    const copies = tensorsOf(...Array<number>(100).fill(1)).map((copy, i) =>
      i % 2 === 0 ? null : { ...copy, dtype: 'float16' as const },
    );
    const kernel = new MultiTensorKernel('adamw', { blocks: 'int32', tensors: 'int32' });
    const { context, launches, specs } = recorder();
    launchUpdate(context, kernel, lists, copies, (blocks, tensors) => ({ blocks, tensors }));
    expect(launches.map(({ grid, rest }) => [grid[0], ...rest])).toEqual([
      [76, 0, 0],
      [24, 76, 76],
    ]);
    const [{ words64 }] = launches as [Launch, Launch];
    const address = (i: number) => 2n ** 40n + 16n * BigInt(i);
    expect(Array.from(words64.slice(4 * 76, 4 * 76 + 4))).toEqual([0n, address(1), 0n, address(3)]);
    expect(Array.from(words64.slice(5 * 76, 5 * 76 + 2))).toEqual([1n, 1n]);
    expect(specs).toEqual([kernel.copying('float16')]);
    expect(specs[0]).toMatchObject({ name: 'adamw', parameters: 'Tii', defines: { COPY: 'float16' } });
  });

  it('of an update without copies is that of its lists', () => {
    const lists = [1, 2].map(() => tensorsOf(...Array<number>(88).fill(1)));
    const kernel = new MultiTensorKernel('sgd', {});
    const { context, launches, specs } = recorder();
    launchUpdate(context, kernel, lists, undefined, () => ({}));
    launchUpdate(context, kernel, lists, Array<null>(88).fill(null), () => ({}));
    expect(launches.map(({ grid }) => grid[0])).toEqual([88, 88]);
    expect(specs.map(({ defines }) => defines)).toEqual([{}, {}]);
  });
});
