import { describe, expect, it } from 'vitest';
import type { BeginBatch, CompileRequest } from '@roofline/cuda/parts';
import * as t from '../../src/index.ts';
import type { CudaDevice } from '../../src/kernel-api.ts';
import { openNoOpDevice } from '../lifetimes/no-op-kernels.ts';
import { compiledStep } from './compiled-step.ts';

/** Compiles nothing ahead, so that each kernel is postponed and then compiled where it is needed. */
function noThreads() {
  const batches: (readonly CompileRequest[])[] = [];
  const beginBatch: BeginBatch = (requests) => {
    batches.push(requests);
    return { take: () => null };
  };
  return { batches, beginBatch };
}

const mebibyte = 2 ** 20;

/** Whether ops are captured rather than run directly. */
let inProgram = false;

/** An op that takes workspaces of so many MiB before and after its kernel, only in executables; variant 0 takes none. */
const working = (variant: number, before: readonly number[], behind: readonly number[]) =>
  t.defineOp<undefined>({
    name: `working${variant}`,
    autocast: 'none',
    infer: ([x]) => [x!],
    cuda: {
      kind: 'custom',
      launch: (context) => {
        for (const mebibytes of before) context.workspace(mebibytes * mebibyte);
        const defines = { VARIANT: variant };
        const source = new URL('halve.cu', import.meta.url);
        if (inProgram && variant > 0) context.kernel({ source, name: 'halve', parameters: 'ppl', defines });
        for (const mebibytes of behind) context.workspace(mebibytes * mebibyte);
      },
    },
    cpu: { kind: 'onnx', build: (_graph, inputs) => inputs },
  });

/** What a function that runs these ops one after another holds once it has an executable. */
function compiledChain(device: CudaDevice, ops: readonly ReturnType<typeof working>[]) {
  const x = t.ones([256], { device });
  const run = t.compile(() => ops.reduce((y, op) => t.applyOne(op, [y], undefined), x));
  inProgram = false;
  run().dispose();
  device.emptyCache();
  device.resetPeakMemory();
  inProgram = true;
  for (let i = 0; i < 3; i++) run().dispose();
  return { run, held: [run.explain().at(-1)!, device.memoryStatistics()] };
}

describe('an executable whose kernels are compiled in the background', () => {
  it('is the one from kernels compiled one by one', () => {
    const { batches, beginBatch } = noThreads();
    const aside = compiledStep(openNoOpDevice(beginBatch));
    expect(aside).toEqual(compiledStep(openNoOpDevice()));
    expect(aside.nodes).toBeGreaterThan(3);
    expect(batches.flat().length).toBeGreaterThan(batches.length);
  });

  it.each<[string, number, () => ReturnType<typeof working>[]]>([
    [
      // Without the first op's, those of the others would each be a separate segment.
      'where those of an op without its kernel are not asked for',
      4,
      () => [working(1, [], [4]), working(2, [2], []), working(3, [3], []), working(4, [4], [])],
    ],
    [
      // In segments of 10 and 8 MiB that exist from the start, the first two of the second op leave no room for its third.
      'that would lie otherwise in what a capture before has left',
      1,
      () => [working(0, [10], []), working(5, [3, 8, 7], [])],
    ],
  ])('takes no more memory at any time for workspaces %s', (_, kernels, ops) => {
    const { batches, beginBatch } = noThreads();
    const { held } = compiledChain(openNoOpDevice(beginBatch), ops());
    expect(held).toEqual(compiledChain(openNoOpDevice(), ops()).held);
    expect(batches.map(({ length }) => length)).toEqual([kernels]);
  });

  it('throws what another call throws meanwhile, and is captured by the next run', () => {
    const { batches, beginBatch } = noThreads();
    const device = openNoOpDevice(beginBatch);
    let isBroken = false;
    const fragile = t.defineOp<undefined>({
      ...working(6, [], []),
      name: 'fragile',
      cuda: {
        kind: 'custom',
        launch: () => {
          if (isBroken) throw new RangeError('mine');
        },
      },
    });
    const x = t.ones([256], { device });
    const run = t.compile(() =>
      t.applyOne(fragile, [t.applyOne(working(7, [], []), [x], undefined)], undefined),
    );
    inProgram = false;
    run().dispose();
    inProgram = true;
    isBroken = true;
    expect(run).toThrow(new RangeError('mine'));
    isBroken = false;
    run().dispose();
    run().dispose();
    expect(run.cache.hits).toBeGreaterThan(0);
    expect(batches.flat()).toHaveLength(1);
    // The stream is no longer capturing.
    device.synchronize();
  });
});
