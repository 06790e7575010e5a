import {
  type Tensor,
  add,
  alias,
  arange,
  byteSize,
  copyInPlace,
  fillInPlace,
  full,
  keep,
  linear,
  ones,
  reshape,
  scope,
  sum,
  transpose,
} from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import {
  DistributedDataParallel,
  type DistributedDataParallelOptions,
  type ReplicatedModel,
} from '../../src/index.ts';
import { FlatBucket } from '../../src/parallel/gradient-buckets.ts';
import { InstantBackend, groupOn } from '../support/instant-backend.ts';

describe('gradients in buckets', () => {
  /** Two layers, one of which is used twice, and a bias. */
  class Layers implements ReplicatedModel {
    readonly once = keep(full([4, 4], 0.5)).requiresGrad_();
    readonly twice = keep(full([4, 4], 0.25)).requiresGrad_();
    readonly bias = keep(full([4], 2)).requiresGrad_();
    readonly parameters = [this.once, this.twice, this.bias];

    *namedParameters(): Generator<[string, Tensor]> {
      for (const [i, parameter] of this.parameters.entries()) yield [`${i}`, parameter];
    }

    backward(): void {
      scope(() => {
        const x = linear(linear(linear(ones([3, 4]), this.once), this.twice), this.twice);
        sum(add(x, this.bias)).backward();
      });
    }

    zeroGrad(): void {
      for (const parameter of this.parameters) {
        parameter.grad?.dispose();
        parameter.grad = null;
      }
    }
  }

  const trained = (options: DistributedDataParallelOptions = {}) => {
    const model = new Layers();
    const parallel = new DistributedDataParallel(model, groupOn(new InstantBackend()), options);
    return { model, parallel };
  };
  const values = ({ parameters }: Layers) => parameters.map(({ grad }) => grad!.toFlatArray());

  it.each(['flat', 'overlap'] as const)('%s has products write them there, and copies the others', (mode) => {
    const plain = new Layers();
    plain.backward();
    const { model, parallel } = trained({ mode });
    for (let step = 1; step <= 2; step++) {
      model.backward();
      expect(values(model)).toEqual(values(plain));
      expect(new Set(model.parameters.map(({ grad }) => grad!.storage)).size).toBe(1);
      // The bias was broadcast: its gradient is a sum.
      expect(parallel.copiedBytes).toBe(step * 16);
      model.zeroGrad();
    }
    // Later ones are added, without a copy.
    parallel.noSync(() => model.backward());
    model.backward();
    expect(parallel.copiedBytes).toBe(3 * 16);
    expect(values(model)).toEqual(values(plain).map((each) => each.map((value) => 2 * value)));
    parallel.dispose();
  });

  it('a gradient that was there before, or that the user has set, is brought home and counted', () => {
    const model = new Layers();
    model.backward();
    const before = values(model);
    const parallel = new DistributedDataParallel(model, groupOn(new InstantBackend()), { mode: 'flat' });
    model.backward();
    expect(values(model)).toEqual(before.map((each) => each.map((value) => 2 * value)));
    expect(parallel.copiedBytes).toBe(64 + 64 + 16);
    model.zeroGrad();
    model.once.grad = keep(full([4, 4], 1));
    model.backward();
    expect(model.once.grad.toFlatArray()).toEqual(before[0]!.map((value) => value + 1));
    expect(parallel.copiedBytes).toBe(64 + 64 + 16 + 64 + 16);
    expect(model.once.grad.storage).toBe(model.twice.grad!.storage);
    parallel.dispose();
  });

  /** A model whose gradients lie in one buffer, and as `change` has left them when the next pass adds to the bias. */
  const rearranged = (change: (model: Layers) => void) => {
    const { model, parallel } = trained({ mode: 'flat' });
    model.backward();
    const [first, second] = values(model);
    const places = model.parameters.map(({ grad }) => grad!.offset);
    change(model);
    scope(() => sum(model.bias).backward());
    // Ranks add up what lies at one place of their buffers.
    expect(model.parameters.map(({ grad }) => grad!.offset)).toEqual(places);
    expect(model.parameters.map(({ grad }) => grad!.isContiguous)).toEqual([true, true, true]);
    const after = values(model).slice(0, 2);
    parallel.dispose();
    return { first, second, after };
  };

  it('a gradient that the user has set to another one of its buffer is brought to its own place', () => {
    const { second, after } = rearranged((model) => {
      model.once.grad = keep(alias(model.twice.grad!));
    });
    expect(after).toEqual([second, second]);
  });

  it('two that have been exchanged are brought home without one writing over the other', () => {
    const { first, second, after } = rearranged((model) => {
      const [once, twice] = [model.once.grad!, model.twice.grad!].map((grad) => keep(alias(grad)));
      [model.once.grad, model.twice.grad] = [twice!, once!];
    });
    expect(after).toEqual([second, first]);
  });

  it('one that is a transposed view of its own place is brought into its order', () => {
    const { second, after } = rearranged((model) => {
      const rows = keep(arange(16));
      copyInPlace(model.once.grad!, reshape(rows, [4, 4]));
      model.once.grad = keep(transpose(model.once.grad!, 0, 1));
    });
    const columns = Array.from({ length: 16 }, (_, i) => (i % 4) * 4 + Math.floor(i / 4));
    expect(after).toEqual([columns, second]);
  });

  it.each(['float32', 'bfloat16', 'float64'] as const)(
    'each begins where kernels load several elements at once, however long the one before it: %s',
    (dtype) => {
      const sizes = [1, 33, 32, 0, 7];
      const parameters = sizes.map((size) => full([size], 0, { dtype }).requiresGrad_());
      const bucket = new FlatBucket(parameters);
      for (const parameter of parameters) bucket.fillZeros(parameter);
      const starts = parameters.map(({ grad }) => grad!.offset * byteSize(dtype));
      expect(starts.map((start) => start % 64)).toEqual([0, 0, 0, 0, 0]);
      const ends = starts.map((start, i) => start + sizes[i]! * byteSize(dtype));
      for (const [i, start] of starts.slice(1).entries()) {
        expect(start).toBeGreaterThanOrEqual(ends[i]!);
        expect(start - ends[i]!).toBeLessThan(64);
      }
      expect(bucket.buffer.byteLength % 64).toBe(0);
      bucket.dispose();
    },
  );

  it('a parameter without a gradient gets zeros, whatever an earlier pass has left in its place', () => {
    const parameters = [2, 3].map((size) => full([size], 0).requiresGrad_());
    const bucket = new FlatBucket(parameters);
    fillInPlace(bucket.buffer, 5);
    bucket.fillZeros(parameters[1]!);
    expect(parameters.map(({ grad }) => grad?.toFlatArray())).toEqual([undefined, [0, 0, 0]]);
    // The other's place is its own.
    expect(bucket.buffer.toFlatArray().slice(0, 2)).toEqual([5, 5]);
    // It may be gone by then.
    parameters[0]!.dispose();
    bucket.dispose();
    expect(parameters[1]!.grad!.toFlatArray()).toEqual([0, 0, 0]);
  });

  it('naive has none, so nothing is copied', () => {
    const { model, parallel } = trained({ mode: 'naive' });
    model.backward();
    expect(parallel.copiedBytes).toBe(0);
    parallel.dispose();
  });
});
