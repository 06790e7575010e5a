import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';
import { finishTogether } from '../../../src/compile/passes/finish-together.ts';
import { fuseProloguesAndEpilogues } from '../../../src/compile/passes/fuse-prologues-epilogues.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../src/testing.ts';
import { type TracedGraph, expectSameBits, opNames, graphOf } from '../traced-graph.ts';

describe.skipIf(hostCompilerVersion() === null)('last kernels of several ops as one', () => {
  const device = openEmulatedDevice();
  const random = (shape: readonly number[], seed: number) =>
    t.randn(shape, { device, generator: new t.Generator(seed) });
  const leaf = (shape: readonly number[], seed: number) =>
    t.tensor(random(shape, seed).toArray() as number[], { device, requiresGrad: true });
  const x = random([5, 24], 1);

  /** The backward pass of consecutive norms, each with a weight of its own. */
  const backward = (norms: number, read: (weights: readonly Tensor[]) => Tensor[]): TracedGraph => {
    const weights = Array.from({ length: norms }, (_, i) => leaf([24], 2 + i));
    let y = x;
    for (const weight of weights) y = t.rmsNorm(y, weight);
    return graphOf(() => {
      y.backward(x);
      return read(weights);
    });
  };
  const finished = (traced: TracedGraph) => {
    const changed = finishTogether(traced.graph, device.facts);
    expectSameBits(traced, changed);
    return changed;
  };
  const gradients = (weights: readonly Tensor[]) => weights.map(({ grad }) => grad!);

  it('at the end of the graph', () => {
    const traced = backward(3, gradients);
    const graph = finished(traced);
    expect(opNames(graph)).toEqual([
      'rmsNormBackward',
      'rmsNormBackward',
      'rmsNormBackward',
      'finish_rmsNormBackward',
    ]);
    expect(graph.calls.at(-1)!.outputs).toHaveLength(3);
    expectSameBits(traced, fuseProloguesAndEpilogues(graph));
  });

  it('before another call reads one of them', () => {
    const traced = backward(2, (weights) => [t.neg(weights[1]!.grad!), ...gradients(weights)]);
    expect(opNames(finished(traced)).filter((name) => name !== 'rmsNormBackward')).toEqual([
      'finish_rmsNormBackward',
      'neg',
    ]);
  });

  it('before partial results pile up', () => {
    const graph = finished(backward(18, gradients));
    const finishes = graph.calls.filter(({ op }) => op.name.startsWith('finish'));
    expect(finishes.map(({ outputs }) => outputs.length)).toEqual([16, 2]);
  });

  it('by kind, where weights differ in length, and with biases', () => {
    const [weight, bias, short] = [leaf([24], 30), leaf([24], 31), leaf([8], 32)] as const;
    const y = t.rmsNorm(t.reshape(t.layerNorm(x, weight, bias), [15, 8]), short);
    const traced = graphOf(() => {
      y.backward(t.reshape(x, [15, 8]));
      return gradients([weight, bias, short]);
    });
    expect(
      finished(traced)
        .calls.filter(({ op }) => op.name.startsWith('finish'))
        .map(({ outputs }) => outputs.length),
    ).toEqual([1, 2]);
  });
});
