import { describe, expect, it } from 'vitest';
import { autocast, full, keep, matmul, scope, sum } from '../../../src/index.ts';
import { negligibleBytes, scheduleGraph } from '../../../src/compile/cuda/schedule.ts';
import type { Graph } from '../../../src/compile/graph/graph.ts';
import { openPlanningDevice } from '../../../src/testing.ts';
import { graphOf } from '../traced-graph.ts';

const device = openPlanningDevice();
const size = 2048;
const [copyBytes, gradientBytes] = [size * size * 2, size * size * 4];

const weights = [1, 2, 3].map((value) => {
  const weight = full([size, size], value, { device, requiresGrad: true });
  // As compilation ensures before a graph goes to its device.
  weight.storage.watch();
  return weight;
});
const x = full([8, size], 1, { device });

/** Forward and backward pass through three weights, whose gradients stay. */
const { graph } = graphOf(() =>
  scope(() => {
    const y = autocast('bfloat16', () => weights.reduce((input, weight) => matmul(input, weight), x));
    sum(y).backward();
    return weights.map(({ grad }) => keep(grad!));
  }),
);

/** The schedule where at most so many bytes may be held. */
function planned(mostBytes: number): {
  copies: number;
  bytes: number;
  carries: (weight: number) => boolean;
} {
  const plan = scheduleGraph({ ...graph, eagerPeakBytes: mostBytes - negligibleBytes }, device.facts);
  const copies = plan.graph.storages.filter(({ source }) => source.kind === 'copy');
  const held = copies.reduce((sum, { byteLength }) => sum + byteLength, plan.arena.byteLength);
  return { copies: copies.length, bytes: held, carries: (weight) => carries(plan.graph, weight) };
}

function carries({ storages }: Graph, weight: number): boolean {
  return storages.some(
    ({ source }) =>
      source.kind === 'copy' &&
      source.casts.some(({ inputs }) => {
        const from = storages[inputs[0]!.storage]!.source;
        return from.kind === 'captured' && from.storage === weights[weight]!.storage;
      }),
  );
}

describe('scheduleGraph', () => {
  const gradients = 3 * gradientBytes;
  const all = planned(Infinity);

  it('carries all copies that fit into what the function held eagerly', () => {
    expect(all.copies).toBe(3);
    expect(all.bytes).toBeGreaterThanOrEqual(gradients + 3 * copyBytes);
    expect(planned(all.bytes).copies).toBe(3);
  });

  it('casts again as many as it must, first those whose memory serves others soonest', () => {
    const fewer = planned(all.bytes - 1);
    expect(fewer.copies).toBe(2);
    expect(fewer.bytes).toBe(all.bytes - copyBytes);
    // After the first product, whose input needs no gradient, nothing reads the first weight.
    expect([0, 1, 2].map(fewer.carries)).toEqual([false, true, true]);
    const one = planned(fewer.bytes - 1);
    expect(one.copies).toBe(1);
    // Backward passes read the last weight first.
    expect([0, 1, 2].map(one.carries)).toEqual([false, true, false]);
    // One copy is exactly what is too much.
    expect(planned(all.bytes - copyBytes + negligibleBytes).copies).toBe(2);
  });

  it('carries none rather than more than the function held, and no fewer than take less memory', () => {
    const least = planned(0);
    expect(least.bytes).toBeLessThan(planned(all.bytes - 1).bytes);
    expect(least.bytes).toBeLessThan(gradients + copyBytes);
    expect(planned(least.bytes)).toMatchObject({ copies: least.copies, bytes: least.bytes });
  });
});
