import { type Tensor, zeros } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { launchOverTensors, multiTensorKernel } from '../src/multi-tensor.ts';

interface Launch {
  readonly grid: readonly number[];
  /** The table's bytes, as 64-bit and 32-bit numbers. */
  readonly words64: BigUint64Array;
  readonly words32: Int32Array;
  readonly rest: readonly unknown[];
}

/** Records launches; the address of a tensor is its place in `tensors`, far above 4 GiB. */
function recorder(tensors: readonly Tensor[]) {
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
  const pointer = (tensor: Tensor) => 2 ** 40 + 16 * tensors.indexOf(tensor);
  const context = { kernel: () => kernel, pointer } as unknown as Parameters<typeof launchOverTensors>[0];
  return { context, launches };
}

describe('launchOverTensors', () => {
  it('writes addresses, sizes and first blocks where the kernel reads them', () => {
    const tensors = [
      zeros([4096]),
      zeros([4097]),
      zeros([0]),
      zeros([1]),
      zeros([4096]),
      zeros([4097]),
      zeros([0]),
      zeros([1]),
    ];
    const { context, launches } = recorder(tensors);
    const spec = multiTensorKernel('sgd', 'ff');
    launchOverTensors(context, spec, [tensors.slice(0, 4), tensors.slice(4)], () => [0.5, 0.25]);
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
    const tensors = Array.from({ length: 200 }, () => zeros([1]));
    const { context, launches } = recorder(tensors);
    launchOverTensors(context, multiTensorKernel('clip', 'i'), [tensors], (before) => [before]);
    expect(launches.map(({ grid, rest }) => [grid[0], rest[0]])).toEqual([
      [88, 0],
      [88, 88],
      [24, 176],
    ]);
  });

  it('stays within the 4 KB that parameters may take', () => {
    const lists = Array.from({ length: 4 }, () => Array.from({ length: 88 }, () => zeros([1])));
    const { context, launches } = recorder(lists.flat());
    launchOverTensors(context, multiTensorKernel('adamw', 'ffffff'), lists, () => [0, 0, 0, 0, 0, 0]);
    expect(launches[0]!.words32.byteLength + 6 * 8).toBeLessThanOrEqual(4096);
  });
});
