import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../src/testing.ts';
import { halve, lowProduct } from '../compile/lowered-ops.ts';
import { withoutMemoryAt } from './interruptions.ts';

const size = 8;

/** Takes more workspace bytes than any arena here has to spare. */
const through = t.defineOp<{ readonly factor: number }>({
  name: 'through',
  autocast: 'none',
  infer: ([x]) => [x!],
  scalars: ({ factor }) => [factor],
  variant: () => '',
  cuda: {
    kind: 'custom',
    launch(context, [x], [y], { factor }) {
      const { shape, strides, dtype } = x!;
      const address = context.workspace(2 ** 16);
      context.copy(x!, { address, dtype, shape, strides });
      context.copy({ address, dtype, shape, strides }, y!);
      context.kernel(addNumber).launch([1, 1, 1], 32, 0, [y!.address, factor, x!.size]);
    },
  },
  cpu: { kind: 'onnx', build: (graph, [x], _, { scalars }) => [graph.node('Add', [x!, scalars[0]!])] },
});
const addNumber: t.KernelSpec = {
  source: new URL('add-number.cu', import.meta.url),
  name: 'add_number',
  parameters: 'pfl',
};

/** A step that counts its runs and halves its weight, and everything that it changes. */
class Step {
  readonly weight: t.Tensor;
  readonly run: t.CompiledFunction<(x: t.Tensor) => readonly t.Tensor[]>;
  #count = 0;

  constructor(device: t.Device) {
    this.weight = t.full([size], 1024, { device, requiresGrad: true });
    this.run = t.compile((x: t.Tensor) => {
      this.weight.grad?.dispose();
      this.weight.grad = null;
      t.backward(t.sum(t.mul(x, this.weight)));
      return t.noGrad(() => {
        const y = t.autocast('bfloat16', () => t.applyOne(lowProduct, [x, this.weight], undefined));
        t.applyOne(halve, [this.weight], undefined);
        const [counted] = t.applyLive(through, [x], () => ({ factor: ++this.#count }));
        const numbers = t.arange(0, size, 1, { dtype: 'float32', device });
        return [y, counted!, numbers, t.add(x, numbers), this.weight.grad!.detach(), x];
      });
    });
  }

  state() {
    return { count: this.#count, weight: this.weight.toFlatArray() };
  }

  dispose(): void {
    this.run.dispose();
    this.weight.grad?.dispose();
    this.weight.dispose();
  }
}

interface Failure {
  readonly call: number;
  readonly allocation: number;
}

describe.skipIf(hostCompilerVersion() === null)('a compiled step on an emulated GPU', () => {
  const device = openEmulatedDevice();
  const memory = () => {
    device.emptyCache();
    const { liveStorages, allocatedBytes, reservedBytes } = device.memoryStatistics();
    return { liveStorages, allocatedBytes, reservedBytes };
  };

  /** What five calls give; before that of `failure` comes one whose allocation fails. */
  function fiveCalls(holdsResults: boolean, failure: Failure | null) {
    return t.scope(() => {
      const step = new Step(device);
      let isReached = false;
      const seen = [0, 1, 2, 3, 4].map((call) => {
        const x = t.full([size], call + 1, { device });
        if (failure?.call === call) {
          const before = step.state();
          const { reached, error } = withoutMemoryAt(failure.allocation, () => step.run(x));
          isReached = reached;
          if (reached) {
            expect(error).toBeInstanceOf(t.OutOfMemoryError);
            expect(step.state()).toEqual(before);
          }
        }
        const results = step.run(x);
        const values = [...results.map((y) => y.toFlatArray()), step.weight.grad!.toFlatArray()];
        if (!holdsResults) for (const y of results) y.dispose();
        return [values, step.state()];
      });
      expect(step.run.cache).toMatchObject({ misses: 2 });
      step.dispose();
      return { seen, isReached };
    });
  }

  // The first call finds no gradient, the second one does.
  it.each([
    ['captures', 2, false],
    ['captures, and somebody holds its last results,', 2, true],
    ['replays', 3, false],
    ['replays, and somebody holds its last results,', 3, true],
  ])('that %s counts and changes nothing where it finds no memory, and leaves none', (_, call, holds) => {
    fiveCalls(holds, null);
    const before = memory();
    const { seen } = fiveCalls(holds, null);
    expect(memory()).toEqual(before);
    let allocation = 0;
    for (; ; allocation++) {
      const interrupted = fiveCalls(holds, { call, allocation });
      expect(memory()).toEqual(before);
      if (!interrupted.isReached) break;
      expect(interrupted.seen).toEqual(seen);
    }
    expect(allocation).toBeGreaterThan(0);
  });

  it('that is captured throws where it finds no memory, or completes and is captured later', () => {
    const before = memory();
    const ends: string[] = [];
    const firstCall = (allocation: number) =>
      t.scope(() => {
        const step = new Step(device);
        const x = t.full([size], 3, { device });
        const { reached, error } = withoutMemoryAt(allocation, () => void step.run(x));
        if (error) expect(error).toBeInstanceOf(t.OutOfMemoryError);
        else {
          expect(step.state()).toMatchObject({ count: 1, weight: new Array(size).fill(512) });
          expect(step.run.cache.size).toBe(reached ? 0 : 1);
          for (const count of [2, 3, 4])
            expect(step.run(x)[1]!.toFlatArray()).toEqual(new Array(size).fill(3 + count));
        }
        if (reached) ends.push(error ? 'fails' : 'succeeds');
        step.dispose();
        return reached;
      });
    for (let allocation = 0; firstCall(allocation); allocation++) expect(memory()).toEqual(before);
    expect(ends.lastIndexOf('fails')).toBeGreaterThan(5);
    expect(ends).toContain('succeeds');
  });
});
