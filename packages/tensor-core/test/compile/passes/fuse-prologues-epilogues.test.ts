import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { DType, Tensor } from '../../../src/index.ts';
import { fuseProloguesAndEpilogues } from '../../../src/compile/passes/fuse-prologues-epilogues.ts';
import { fusePointwise } from '../../../src/compile/passes/fuse-pointwise.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../src/testing.ts';
import { expectSameBits, opNames, graphOf } from '../traced-graph.ts';

describe.skipIf(hostCompilerVersion() === null)('prologues and epilogues of norms', () => {
  const device = openEmulatedDevice();
  const random = (shape: readonly number[], seed: number, dtype: DType = 'float32') =>
    t.cast(t.randn(shape, { device, generator: new t.Generator(seed) }), dtype);
  const shape = [5, 24];
  const [x, row, one] = [random(shape, 1), random([24], 2), random([], 3)];
  const low = random(shape, 4, 'bfloat16');
  const [weight, bias] = [random([24], 5), random([24], 6)];

  const [column, longRow, longWeight] = [random([5, 1], 8), random([1, 8200], 9), random([8200], 10)];

  const fused = (fn: () => readonly Tensor[]) => {
    const traced = graphOf(fn);
    const changed = fuseProloguesAndEpilogues(fusePointwise(traced.graph));
    expectSameBits(traced, changed);
    return changed;
  };
  /** Gradients of a norm of `input`, with functions of the gradient that it receives, and of the one that it gives. */
  const backward = (
    input: Tensor,
    norm: (x: Tensor) => Tensor,
    before: () => Tensor,
    after: (dx: Tensor) => Tensor[],
  ) => {
    const leaf = t.tensor(input.toArray() as number[][], { device, requiresGrad: true });
    // Saved before the graph begins, as by a separate forward pass.
    const y = norm(leaf);
    return () => {
      y.backward(before());
      const gradient = leaf.grad!;
      return [...after(gradient), gradient];
    };
  };

  it('a residual sum before a norm, and its result in low precision after it', () => {
    const residual = () => {
      const sum = t.add(x, low);
      return [t.rmsNorm(sum, weight, 1e-5, { dtype: 'bfloat16' }), sum];
    };
    const graph = fused(residual);
    expect(opNames(graph)).toEqual(['fused_add_rmsNorm']);
    expect(graph.calls[0]!.outputs.map(({ dtype }) => dtype)).toEqual(['float32', 'bfloat16', 'float32']);
  });

  it('writes no more than is read', () => {
    const graph = fused(() => [t.cast(t.rmsNorm(t.mul(t.add(x, row), one), weight), 'float16')]);
    expect(opNames(graph)).toEqual(['fused_add_mul_rmsNorm_cast']);
    const [call] = graph.calls;
    expect(call!.inputs).toHaveLength(4);
    expect(call!.outputs.map(({ shape, dtype }) => [dtype, ...shape])).toEqual([
      ['float32', 5],
      ['float16', 5, 24],
    ]);
  });

  it('a norm with a mean, in float64 and in low precision', () => {
    const wide = (y: Tensor) => t.cast(y, 'float64');
    expect(
      opNames(
        fused(() => {
          const y = t.layerNorm(t.mul(wide(x), 0.1), weight, bias);
          return [t.add(y, wide(x)), y];
        }),
      ),
    ).toContain('fused_cast_mul_layerNorm_cast_add');
    expect(opNames(fused(() => [t.relu(t.layerNorm(t.neg(low), weight, bias))]))).toEqual([
      'fused_neg_layerNorm_relu',
    ]);
  });

  it('the sum of its input and its output', () => {
    const graph = fused(() => {
      const sum = t.add(x, low);
      return [t.add(sum, t.rmsNorm(sum, weight))];
    });
    expect(opNames(graph)).toEqual(['fused_add_rmsNorm_add']);
  });

  it('gradients, with sums in place', () => {
    const running = random(shape, 7);
    const norm = (y: Tensor) => t.rmsNorm(y, weight, 1e-5, { dtype: 'bfloat16' });
    const graph = fused(
      backward(
        x,
        norm,
        () => {
          const dy = t.mul(low, 2);
          t.addInPlace(dy, low);
          return dy;
        },
        (dx) => {
          const total = t.copy(running);
          t.addInPlace(total, dx);
          return [t.cast(total, 'bfloat16'), total];
        },
      ),
    );
    expect(opNames(graph).find((name) => name.includes('Backward'))).toMatch(
      /^fused_mul_add__rmsNormBackward_.*add__cast$/,
    );
  });

  it.each<[string, () => Tensor[]]>([
    ['another layout', () => [t.rmsNorm(t.transpose(t.neg(t.transpose(x, 0, 1)), 0, 1), weight)]],
    ['a repeated column', () => [t.rmsNorm(t.add(x, column), weight)]],
    [
      'an output that is overwritten',
      () => {
        const y = t.rmsNorm(x, weight);
        t.addInPlace(y, x);
        return [y];
      },
    ],
    [
      'an input that others read before',
      () => {
        const y = t.neg(x);
        const other = t.softmax(y, -1);
        return [t.rmsNorm(y, weight), other];
      },
    ],
    [
      'a weight that the op behind overwrites',
      () => {
        const w = t.add(row, 0);
        const z = t.rmsNorm(t.view(x, [5, 24]), w);
        const many = t.neg(t.select(z, 0, 0));
        t.copyInPlace(w, many);
        return [w];
      },
    ],
    ['rows too long for registers', () => [t.rmsNorm(t.neg(longRow), longWeight)]],
  ])('not of %s', (_, fn) => {
    expect(opNames(fused(fn)).filter((name) => name.includes('Norm'))).toEqual(['rmsNorm']);
  });

  it('one element of each row of a matrix is not a row, though there are as many', () => {
    const square = random([24, 24], 11);
    const eachRow = random([24, 1], 12);
    expect(opNames(fused(() => [t.rmsNorm(t.mul(square, eachRow), weight)]))).toEqual(['mul', 'rmsNorm']);
    expect(opNames(fused(() => [t.mul(t.rmsNorm(square, weight), eachRow)]))).toEqual(['rmsNorm', 'mul']);
    expect(opNames(fused(() => [t.rmsNorm(t.mul(square, row), weight)]))).toEqual(['fused_mul_rmsNorm']);
  });

  it('not where what the reader adds is written between, by the first call after the norm', () => {
    const rows = t.slice(x, 0, 1, 3);
    const written = () => {
      const b = t.softmax(x, -1);
      const y = t.rmsNorm(x, weight);
      t.addInPlace(t.slice(b, 0, 0, 2), rows);
      return [t.add(y, b)];
    };
    expect(opNames(fused(written))).toEqual(['softmax', 'rmsNorm', 'add_', 'add']);
  });

  describe('not where a call reads one tensor through several inputs', () => {
    const first = (y: Tensor) => t.select(y, 0, 0);
    const alone = random([1, 24], 13);
    const leaf = random(shape, 14).requiresGrad_();
    const single = random([1, 24], 15).requiresGrad_();
    const gradientsOf = (x: Tensor, make: () => Tensor): Tensor[] => {
      x.grad = null;
      make();
      return [x.grad!.detach()];
    };
    it.each<[string, () => Tensor[]]>([
      [
        'an input that is its own weight',
        () => {
          const y = t.mul(row, row);
          return [t.rmsNorm(y, y), t.layerNorm(y, y, bias), t.layerNorm(y, weight, y)];
        },
      ],
      [
        'an input that has its own weight as a row',
        () => {
          const y = t.mul(x, x);
          return [t.rmsNorm(y, first(y))];
        },
      ],
      [
        'an input that has its own bias as a row',
        () => {
          const y = t.mul(x, x);
          return [t.layerNorm(y, weight, first(y))];
        },
      ],
      [
        'an input that has weight and bias as rows',
        () => {
          const y = t.mul(x, x);
          return [t.layerNorm(y, first(y), t.select(y, 0, 1))];
        },
      ],
      [
        'a result whose reader also adds a row of it',
        () => {
          const y = t.rmsNorm(x, weight);
          return [t.add(y, first(y))];
        },
      ],
      [
        'a result whose reader also adds an element of it',
        () => {
          const y = t.rmsNorm(x, weight);
          return [t.add(y, t.select(first(y), 0, 3))];
        },
      ],
      [
        'a gradient that is the weight',
        () =>
          gradientsOf(single, () => {
            const dy = t.mul(alone, 2);
            const y = t.rmsNorm(single, t.reshape(dy, [24]));
            y.backward(dy);
            return y;
          }),
      ],
      [
        'a gradient whose row is the weight',
        () =>
          gradientsOf(leaf, () => {
            const dy = t.mul(x, 2);
            const y = t.rmsNorm(leaf, first(dy));
            y.backward(dy);
            return y;
          }),
      ],
      [
        'a gradient that is the input',
        () =>
          gradientsOf(leaf, () => {
            const both = t.mul(leaf, 2);
            const y = t.rmsNorm(both, weight);
            y.backward(both.detach());
            return y;
          }),
      ],
    ])('%s', (_, fn) => {
      fused(fn);
    });

    it('but with a reader that reads nothing else of it', () => {
      const square = () => {
        const y = t.rmsNorm(x, weight);
        return [t.mul(y, y)];
      };
      expect(opNames(fused(square))).toEqual(['fused_rmsNorm_mul']);
    });
  });
});
